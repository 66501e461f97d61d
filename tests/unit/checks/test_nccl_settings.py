"""The lint over NCCL settings, and the table behind it."""

import pytest

from nodetune.checks.nccl import _adapters, _effects, _names, _paths, _prefixes, _values
from nodetune.checks.shared import nccl_reading, nccl_settings, nccl_table
from nodetune.checks.shared.nccl_table import release, table, variables


def conf(*lines, scope="nccl.conf", file="/etc/nccl.conf"):
    """Settings as the collector gives them."""
    found = []
    for number, line in enumerate(lines, 1):
        name, equals, value = line.partition("=")
        found.append(
            {
                "name": name,
                "value": value if equals else None,
                "file": file,
                "line": number,
                "raw": line,
                "scope": scope,
            }
        )
    return found


def only(problems):
    (text,) = problems.values()
    return text


# -- the table -----------------------------------------------------------------------------------------------------------

KINDS = {"setting", "debugging", "experimental", "internal", "deprecated", "removed", "invented", "superfluous"}
TYPES = {*_values.BY_TYPE, "interfaces", "hcas", "ucx_devices", "path", "text"}


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_has_a_description_and_a_source(name):
    about = variables()[name]
    assert about["kind"] in KINDS
    assert about["source"]
    assert about["kind"] in ("removed", "invented") or about["type"] in TYPES
    assert about["kind"] != "removed" or "last" in about or about["component"] != "nccl"
    assert ("lost_at" in about) == ("loses" in about)
    assert "lost_at" not in about or "when" in about
    assert ("risky_at" in about) == ("harm" in about)
    assert about.get("when", "rdma") in _paths.PATHS
    assert about.get("type") not in ("word", "words") or about["values"]


def test_the_table_holds_what_was_looked_up():
    components = table()["variables"]
    assert len(components["nccl"]) >= 302
    assert sum(map(len, components.values())) >= 381
    for name in (*table()["per_job"], *table()["noisy"], *table()["efa_defaults"]):
        assert name in variables()


def test_every_default_is_a_value_that_the_lint_accepts():
    defaults = {
        name: about["default"]
        for name, about in variables().items()
        if about.get("type") in ("number", "bytes") and isinstance(about.get("default"), int) and about["default"] >= 0
    }
    assert len(defaults) > 20
    assert [name for name, default in defaults.items() if _values.invalid(conf(f"{name}={default}"))] == []


# -- numbers as C reads them ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("106", (106, "")),
        ("-1", (-1, "")),
        ("0x6A", (106, "")),
        ("010", (8, "")),
        ("08", (0, "8")),
        ("4M", (4, "M")),
        ("true", (0, "true")),
        (" 7", (7, "")),
        ("", (0, "")),
    ],
)
def test_numbers_are_read_as_strtoll_does_with_base_0(text, read):
    assert nccl_reading.number(text) == read


def test_a_number_of_absurd_length_is_no_trouble():
    assert _values.invalid(conf("NCCL_IB_TC=" + "9" * 900))


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("NCCL_BUFFSIZE=4M", "write 4194304"),
        ("NCCL_BUFFSIZE=4MiB", "write 4194304"),
        ("NCCL_NTHREADS=16", "uses 512"),
        ("NCCL_NTHREADS=1024", "outside 64 to 512"),
        ("NCCL_SHM_DISABLE=yes", "write 1"),
        ("NCCL_SHM_DISABLE=2", "neither 0 nor 1"),
        ("NCCL_SOCKET_FAMILY=af_inet", "AF_INET"),
        ("NCCL_DEBUG=VERBOSE", "one of VERSION, WARN"),
        ("NCCL_DEBUG_SUBSYS=INIT,NETS", "NETS is unknown"),
        ("NCCL_ALGO=Ring,Foo", "Foo"),
        ("NCCL_IB_ADDR_RANGE=10.0.0.0/40", "CIDR"),
        ("NCCL_PROXY_CPUSET=all", "CPU list"),
        ("NCCL_RAS_ADDR=localhost", "host:port"),
        ("NCCL_CROSS_NIC=3", "not one of 0, 1, 2"),
        ("NCCL_SOCKET_RETRY_CNT=0", "below 1"),
        ("OFI_NCCL_NIC_DUP_CONNS=four", "is not a number"),
    ],
)
def test_values_that_are_not_read_as_they_look(line, part):
    assert part in only(_values.invalid(conf(line)))


@pytest.mark.parametrize(
    "line",
    [
        "NCCL_NTHREADS=512",
        "NCCL_P2P_LEVEL=3",
        "NCCL_DEBUG_SUBSYS=^INIT,NET",
        "NCCL_ALGO=ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring",
        "NCCL_PROTO=^LL128",
        "NCCL_SET_THREAD_NAME=true",
        "FI_EFA_USE_HUGE_PAGE=no",
        "NCCL_IB_SL=-1",
        "NCCL_IB_TC=",
        "NCCL_RAS_TIMEOUT_FACTOR=1.5",
        "NCCL_RAS_ADDR=[::1]:28028",
    ],
)
def test_values_that_are_read_as_they_look(line):
    assert _values.invalid(conf(line)) == {}


def test_a_value_that_a_shell_computes_is_not_judged():
    assert _values.invalid(conf("NCCL_IB_TC=$TC", scope="profile", file="/etc/profile.d/a.sh")) == {}


# -- lines and names -----------------------------------------------------------------------------------------------------


def test_a_malformed_line_is_reported_once_and_not_judged():
    lines = conf("export NCCL_BUFFSIZE=4M")
    assert len(nccl_settings.malformed(lines)) == 1
    assert _values.invalid(lines) == _names.unknown(lines) == {}


def test_blanks_and_quotes_are_faults_of_nccl_conf_only():
    lines = conf("NCCL_DEBUG=WARN ", scope="environment", file="/etc/environment")
    assert nccl_settings.malformed(lines) == {}


def test_a_carriage_return_matters_to_words_of_an_older_release():
    lines = [{**each, "raw": each["raw"] + "\r"} for each in conf("NCCL_NET=IB", "NCCL_IB_TC=106")]
    assert list(nccl_settings.malformed(lines, "2.21.5")) == ["/etc/nccl.conf:1 NCCL_NET"]
    assert nccl_settings.malformed(lines, "2.30.7") == nccl_settings.malformed(lines) == {}


def test_names_of_others_are_left_alone():
    assert _names.unknown(conf("NCCL_VERSION=2.21.5", "NCCL_INSPECTOR_ENABLE=1", "UCX_ANYTHING=1", "PATH=/bin")) == {}


def test_a_misspelt_plugin_variable_is_recognised_when_close():
    assert "OFI_NCCL_PROTOCOL" in only(_names.unknown(conf("OFI_NCCL_PROTOCOLS=RDMA")))
    assert _names.unknown(conf("OFI_NCCL_BRAND_NEW=1")) == {}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_DISABLE_IB", "NCCL_IB_DISABLE"),
        ("NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_ALOG", "NCCL_ALGO"),
        ("NCCL_IB_HCAS", "NCCL_IB_HCA"),
        ("NCCL_BI_TC", "NCCL_IB_TC"),
        ("NCCL_BUFSIZES", "NCCL_BUFFSIZE"),
    ],
)
def test_a_misspelt_name_is_one_with_any_nccl(name, meant):
    assert f"did you mean {meant}?" in only(_names.unknown(conf(f"{name}=1"), settled=False))


def test_no_name_that_a_release_added_would_have_been_taken_for_a_misspelt_one():
    named = [(release(about["first"]), name) for name, about in variables().items() if "first" in about]
    taken = [
        name
        for first, name in named
        if any(earlier < first and _names.misspells(name, known) for earlier, known in named)
    ]
    assert len(named) > 290
    assert taken == ["NCCL_THREAD_THRESHOLDS"], "it replaced NCCL_THREAD_THRESHOLD"


def test_a_name_of_tomorrow_is_unknown_only_where_a_library_settles_it():
    lines = conf("NCCL_OF_TOMORROW=1")
    assert _names.unknown(lines) and not _names.unknown(lines, settled=False)


# -- releases --------------------------------------------------------------------------------------------------------------


def test_a_removed_variable_is_fine_where_the_release_reads_it():
    lines = conf("NCCL_SHM_MEMCPY_MODE=1")
    assert _names.without_effect(lines, "2.27.3") == {}
    assert "no NCCL after 2.30.4" in only(_names.without_effect(lines, "2.30.7"))
    assert _names.without_effect(lines), "an unknown release is taken for the newest"


def test_what_is_too_new_is_told_only_where_the_release_is_known():
    lines = conf("NCCL_NETDEVS_POLICY=max:1")
    assert "added in 2.28" in only(_names.without_effect(lines, "2.21.5"))
    assert _names.without_effect(lines) == {}


def test_the_newest_library_counts():
    libraries = [{"version": "2.9.9"}, {"version": "2.21.5"}, {"version": None}]
    assert nccl_table.newest(libraries) == "2.21.5"
    assert nccl_table.newest([]) == ""


# -- who wins --------------------------------------------------------------------------------------------------------------


def test_the_environment_wins_over_files_and_later_files_win():
    profile = conf("NCCL_DEBUG=INFO", scope="profile", file="/etc/profile.d/a.sh")
    environment = conf("NCCL_DEBUG=VERSION", scope="environment", file="/etc/environment")
    found = nccl_settings.repeated(conf("NCCL_DEBUG=WARN") + environment + profile)
    assert sorted(found) == ["/etc/environment:1 NCCL_DEBUG", "/etc/nccl.conf:1 NCCL_DEBUG"]
    assert all("/etc/profile.d/a.sh line 1 sets INFO" in text for text in found.values())


# -- selections ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "selected"),
    [
        ("eth", ["eth0", "eth1", "eth10"]),
        ("eth1", ["eth1", "eth10"]),
        ("=eth1", ["eth1"]),
        ("^eth1", ["lo", "eth0"]),
        ("^=eth1,lo", ["eth0", "eth10"]),
        ("eth0,^lo", ["eth0"]),
    ],
)
def test_a_selection_reads_its_signs_only_at_the_start(value, selected):
    assert nccl_reading.NcclSelection(value).selected(["lo", "eth0", "eth1", "eth10"]) == selected


def test_a_caret_behind_an_equals_sign_is_part_of_the_name():
    selection = nccl_reading.NcclSelection("=^eth0")
    assert not selection.excludes
    assert selection.misplaced() == ["^eth0"]


@pytest.mark.parametrize("token", ["eth0", "mlx5_0", "mlx5_bond_0", "rocep1s0f1", "mlx5_0:1"])
def test_a_token_that_ends_in_a_number_is_a_name(token):
    assert _prefixes.is_name(nccl_reading.NcclSelection(token), token)


@pytest.mark.parametrize("token", ["en", "enp1s", "bond", "mlx5", "mlx5_", "bnxt_re"])
def test_other_tokens_are_prefixes_unless_the_selection_is_exact(token):
    assert not _prefixes.is_name(nccl_reading.NcclSelection(token), token)
    assert _prefixes.is_name(nccl_reading.NcclSelection(f"={token}"), token)


def port(state="ACTIVE", layer="InfiniBand", rate=400):
    return {"state": state, "link_layer": layer, "rate_gbps": rate}


def test_a_port_number_after_the_colon_narrows_the_choice():
    ports = {"mlx5_0/1": port(), "mlx5_0/2": port(state="DOWN")}
    assert _adapters.wrong(conf("NCCL_IB_HCA==mlx5_0:1"), ports) == {}
    assert "mlx5_0/2 is not active" in only(_adapters.wrong(conf("NCCL_IB_HCA==mlx5_0"), ports))
    assert _adapters.wrong(conf("NCCL_IB_HCA==mlx5_0:1:0:0"), ports) == {}, "rail and plane follow the port"
    assert "not active" in only(_adapters.wrong(conf("NCCL_IB_HCA==mlx5_0::0:0"), ports)), "an empty port means all"


def test_an_exclusion_may_leave_dead_ports_in():
    ports = {"mlx5_0/1": port(), "mlx5_1/1": port(state="DOWN"), "mlx5_2/1": port(layer="Ethernet", rate=25)}
    assert _adapters.wrong(conf("NCCL_IB_HCA=^=mlx5_2"), ports) == {}


# -- what values do --------------------------------------------------------------------------------------------------------


def test_a_fast_path_that_the_host_does_not_have_cannot_be_lost():
    lines = conf("NCCL_IB_DISABLE=1", "NCCL_P2P_DISABLE=1")
    assert list(_effects.lost_paths(lines, {"p2p": True})) == ["/etc/nccl.conf:2 NCCL_P2P_DISABLE"]
    assert list(_effects.lost_paths(lines, {"rdma": True})) == ["/etc/nccl.conf:1 NCCL_IB_DISABLE"]
    assert _effects.lost_paths(conf("NCCL_NVLS_ENABLE=0"), {"p2p": True}) == {}


def test_one_fault_is_told_by_one_part_of_the_lint():
    lines = conf(
        "NCCL_P2P_DISABLE=1", "NCCL_DEBUG=INFO", "NCCL_LEGACY_CUDA_REGISTER=1", "NCCL_TOPO_DUMP_FILE=/tmp/t.xml"
    )
    assert _effects.forced(lines) == {}


@pytest.mark.parametrize("value", ["LL128", "ll128,simple", "Simple;allreduce:LL128"])
def test_ll128_must_not_be_forced(value):
    assert _effects.unsafe(conf(f"NCCL_PROTO={value}"))


@pytest.mark.parametrize("value", ["^LL128", "LL,Simple", "Simple;allreduce:^LL128"])
def test_ll128_may_be_ruled_out(value):
    assert _effects.unsafe(conf(f"NCCL_PROTO={value}")) == {}
