"""Profiles and site files: overlays change only what they name, and every error names file and line."""

import json
from dataclasses import replace

import jsonschema
import pytest
import yaml

from nodetune.api.model import Finding, Waiver
from nodetune.api.predicates import AtLeast, AtMost, Equals, Within
from nodetune.config import overlay, profile, site_file, waivers
from nodetune.facts import document
from nodetune.foundation import paths, yaml_lines
from nodetune.foundation.yaml_lines import FileError


def site(tmp_path, text):
    path = tmp_path / "site.yml"
    path.write_text(text)
    return site_file.read(path)


def resolved(tmp_path, text, *names):
    return {check.id: check for check in profile.resolve(profile.named(names), site(tmp_path, text)).checks}


def test_the_shipped_profiles_are_what_their_files_say():
    files = {path.stem: path for path in profile.FOLDER.glob("*.yml")}
    assert list(profile.shipped()) == sorted(files)
    for name, path in files.items():
        assert profile.shipped()[name] == overlay.parse(yaml_lines.load(path), name), "run make write"


def test_a_site_file_overrides_accept_set_and_severity(tmp_path):
    text = "checks:\n  numa-balancing-on: {accept: {at_most: 1}, set: 1, severity: low, gate: true}\n"
    check = resolved(tmp_path, text)["numa-balancing-on"]
    assert (check.accept, check.set, check.severity) == (AtMost(1), 1, "low")
    assert "numa-balancing-on" in profile.resolve(("base",), site(tmp_path, text)).gates


SICK = "add:\n  - {id: site-sick, file: /etc/state, accept: well, severity: critical%s}\n"


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        (SICK % "", False),
        (SICK % ", gate: true", True),
        (SICK % "" + "checks:\n  site-sick: {gate: true}\n", True),
        (SICK % ", gate: true" + "checks:\n  site-sick: {severity: low}\n", True),
        (SICK % ", gate: true" + "checks:\n  site-sick: {gate: false}\n", False),
        (SICK % ", gate: true" + "checks:\n  site-sick: off\n", False),
    ],
)
def test_a_check_of_the_site_gates_only_where_it_says_so(tmp_path, text, gates):
    assert ("site-sick" in profile.resolve(("base",), site(tmp_path, text)).gates) is gates


def test_an_empty_override_leaves_the_setting_untouched(tmp_path):
    assert resolved(tmp_path, "checks:\n  numa-balancing-on:\n")["numa-balancing-on"].accept is None


@pytest.mark.parametrize(
    ("check", "text", "accept", "value"),
    [
        ("min-free-kbytes-low", "{accept: {at_least: 256MiB}, set: 0.5 GiB}", AtLeast(262144), 524288),
        ("dirty-limit-high", "{accept: {at_most: 16GiB}, set: 4 GB}", AtMost(16 << 30), 4 * 10**9),
        ("read-ahead-small", "{accept: {within: [1MiB, 16MiB]}}", Within([1024, 16384]), 4096),
        ("tcp-rmem-below-bandwidth", "{set: [4096, 131072, 64MiB]}", None, [4096, 131072, 64 << 20]),
        ("deep-idle-allowed", "{accept: {at_most: 0.2ms}, set: 50us}", AtMost(200), 50),
        ("docker-shm-small", "{accept: {at_least: 2GiB}, set: 32g}", AtLeast(2 << 30), "32g"),
        ("memlock-limited", "{accept: unlimited, set: unlimited}", Equals("unlimited"), "unlimited"),
    ],
)
def test_a_site_file_takes_quantities_with_units(tmp_path, check, text, accept, value):
    found = resolved(tmp_path, f"checks:\n  {check}: {text}\n")[check]
    assert found.set == value
    assert accept is None or found.accept == accept


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "{accept: {at_least: 256MHz}}",
            "accept: '256MHz' is not a quantity here: write a number of KiB, or a text such as 256MiB",
        ),
        ("{accept: {at_least: 100B}}", "accept: '100B' is not a whole number of KiB"),
        ("{accept: {at_least: lots}}", "at_least must be a number, found 'lots'; min-free-kbytes-low counts in KiB"),
        ("{set: 12 parsecs}", "set: '12 parsecs' is not a quantity here: write a number of KiB"),
    ],
)
def test_a_quantity_that_does_not_fit_names_the_unit(tmp_path, text, says):
    with pytest.raises(FileError, match=f"line 2: {says}"):
        resolved(tmp_path, f"checks:\n  min-free-kbytes-low: {text}\n")


def test_a_quantity_where_there_is_no_unit_names_the_check(tmp_path):
    with pytest.raises(FileError, match="line 2: .*found '60GiB'; swappiness-high takes numbers without a unit"):
        resolved(tmp_path, "checks:\n  swappiness-high: {accept: {at_most: 60GiB}}\n")


@pytest.mark.parametrize("accept", ["{at_least: 32}", "{within: [1, 2]}", "64"])
def test_a_check_that_names_faults_takes_no_number(tmp_path, accept):
    with pytest.raises(FileError, match="line 2: shm-small lists faults .*, so it cannot accept a number"):
        resolved(tmp_path, f"checks:\n  shm-small: {{accept: {accept}}}\n")


def test_off_takes_a_check_out(tmp_path):
    left = resolved(tmp_path, "checks:\n  numa-balancing-on: off\n")
    assert "swappiness-high" in left
    assert "numa-balancing-on" not in left


def test_a_later_overlay_wins(tmp_path):
    text = "checks:\n  thp-unsuitable: {accept: never, set: never}\n"
    assert resolved(tmp_path, text, "inference")["thp-unsuitable"].accept == Equals("never")


@pytest.mark.parametrize(
    ("added", "fact", "kind"),
    [
        ("sysctl: vm.nr_hugepages\n    accept: 0\n    set: 0", "sysctl.vm.nr_hugepages", "sysctl"),
        ("fact: gpu.count\n    accept: 8", "gpu.count", "manual"),
        ('sysfs: /sys/a/b\n    accept: "off"\n    set: "off"', "sysfs./sys/a/b", "sysfs"),
        ("file: /etc/motd\n    accept: {matches: welcome}", "file./etc/motd", "manual"),
        ("service: auditd\n    accept: enabled\n    set: enabled", "services.auditd", "service"),
        ("kernel_arg: audit\n    accept: 1\n    set: 1", "cmdline.running.audit", "kernel_arg"),
    ],
)
def test_a_site_adds_checks_without_code(tmp_path, added, fact, kind):
    found = resolved(tmp_path, f"add:\n  - id: site-mine\n    {added}\n")["site-mine"]
    assert (found.fact, found.remedy.kind, found.area) == (fact, kind, "site")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chekcs: {}\n", "line 1: unknown key 'chekcs': did you mean 'checks'?"),
        (
            "about: x\nchecks:\n  numa-balancing-no: off\n",
            "line 3: unknown check 'numa-balancing-no': did you mean 'numa-balancing-on'?",
        ),
        ("checks:\n  numa-balancing-on:\n    severity: bad\n", "line 3: severity must be one of"),
        (
            "checks:\n  numa-balancing-on:\n    accept: {at_lest: 1}\n",
            "line 3: unknown key 'at_lest': did you mean 'at_least'?",
        ),
        ("checks:\n  numa-balancing-on: {gate: 1}\n", "line 2: gate must be true or false"),
        ("checks:\n  numa-balancing-on: 5\n", "line 2: numa-balancing-on must be a mapping, on, off, or nothing"),
        ("checks:\n  numa-balancing-on: off\n  numa-balancing-on: off\n", "line 3: 'numa-balancing-on' appears twice"),
        ("- a\n", "line 1: a site file must be a mapping"),
        ("a: [\n", "not YAML"),
        ("a: \x01\n", "not YAML"),
        (
            "waivers:\n  - {id: numa-balancing-on, hosts: '*', reason: r, owner: o}\n",
            "line 2: an item of waivers lacks until",
        ),
        (
            "waivers:\n  - {id: numa-balancing-on, hosts: '*', reason: r, owner: o, until: soon}\n",
            "line 2: until must be a date",
        ),
        (
            "waivers:\n  - id: numa-balancing-on\n    hosts: gpu[1\n    reason: r\n    owner: o\n    until: 2030-01-01\n",
            "line 3: hosts: 'gpu[1' is not a valid node set",
        ),
        (
            "waivers:\n  - {id: numa-balancing-on, hosts: [a, b], reason: r, owner: o, until: 2030-01-01}\n",
            "line 2: hosts must be a node set or shell patterns, such as gpu[001-004],login*",
        ),
        (
            "waivers:\n  - id: numa-balancing-on\n    hosts: '*'\n    reason: r\n    owner: o\n    until: 2025-13-01\n",
            "line 6: '2025-13-01' is not a valid date: month must be in 1..12",
        ),
        ("about: x\nprofile: nope\n", "line 2: unknown profile 'nope'; there are: base, "),
        ("profile:\n  - vm\n  - inferense\n", "line 3: unknown profile 'inferense': did you mean 'inference'?"),
        (
            "waivers:\n  - {id: nope, hosts: '*', reason: r, owner: o, until: 2030-01-01}\n",
            "line 2: unknown check 'nope'",
        ),
        ("add:\n  - {id: mine, sysctl: a.b, accept: 0}\n", "line 2: id must be site- and small letters"),
        (
            "add:\n  - {id: site-a, accept: 0}\n",
            "line 2: an item of add must have exactly one of sysctl, sysfs, file, service, kernel_arg",
        ),
        ("add:\n  - {id: site-a, sysctl: a.b}\n", "line 2: an item of add lacks accept"),
        ("add:\n  - {id: site-a, service: x, accept: up}\n", "line 2: a service must be enabled, disabled, masked"),
        ("add:\n  - {id: site-a, service: x, accept: [up]}\n", "line 2: a service must be enabled, disabled, masked"),
        (
            "add:\n  - {id: site-a, sysctl: a.b, accept: 0}\n  - {id: site-a, sysctl: a.c, accept: 0}\n",
            "line 3: site-a appears twice",
        ),
        (
            "waivers:\n  - {id: [a], hosts: '*', reason: r, owner: o, until: 2030-01-01}\n",
            "line 2: id must be a text",
        ),
        ("about: x\n5: y\n", "line 2: unknown key 5; there are: about, profile"),
        ("profile: {a: b}\nwaivers: {}\nabout: []\n", "line 1: profile must be a text or a list"),
        (
            "checks:\n  numa-balancing-on: {accept: {at_least: 1, at_most: 2}}\n",
            "line 2: accept must have one key; found at_least, at_most",
        ),
        ("? [a]\n: 1\n", "line 1: not YAML: a key is a single word"),
        ("checks:\n  numa-balancing-on: {accept: {fact: derived.nope}}\n", "line 2: unknown fact 'derived.nope'"),
        ("checks:\n  numa-balancing-on: {set: {fact: nope.x}}\n", "line 2: unknown fact 'nope.x'"),
        ("when:\n  - {fact: nope.x, accept: 1}\n", "line 2: unknown fact 'nope.x'"),
        ("checks:\n  numa-balancing-on: {accept: {within: [9, 1]}}\n", "line 2: within must be two numbers"),
    ],
)
def test_an_error_names_file_and_line(tmp_path, text, message):
    with pytest.raises(FileError) as caught:
        site(tmp_path, text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "site.yml"))
    assert "\n" not in str(caught.value)


def test_a_site_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        site_file.read(tmp_path / "none.yml")


def test_an_unknown_profile_is_named_with_those_that_exist():
    with pytest.raises(FileError, match="did you mean 'inference'"):
        profile.named(["inferense"])


def facts(**values):
    return document.from_data({"facts": {name.replace("__", "."): fact for name, fact in values.items()}})


def test_the_facts_choose_the_overlays_and_say_why():
    names, reason = profile.matching(facts(host__virtual={"value": True}))
    assert names[:2] == ("base", "training")
    assert "vm" in names
    assert "vm: a virtual machine" in reason


@pytest.mark.parametrize(
    ("slurm", "units", "profile_name", "because"),
    [
        (True, ["vllm@llama.service"], "training", "training: Slurm runs jobs here"),
        (False, ["ssh.service", "vllm@llama.service"], "inference", "inference: vllm@llama.service runs here"),
        (False, ["tritonserver.service"], "inference", "inference: tritonserver.service runs here"),
        (False, ["ssh.service", "kubelet.service"], "training", "judged as training: -p inference for serving"),
    ],
)
def test_what_runs_on_a_host_tells_what_it_is_for(slurm, units, profile_name, because):
    seen = facts(slurm__present={"value": slurm}, services__running={"value": units})
    assert profile.matching(seen) == (("base", profile_name), because)


def test_a_guessed_intent_is_called_a_guess():
    assert profile.matching(facts())[1] == "judged as training: -p inference for serving"


def test_facts_that_cannot_be_read_choose_nothing():
    assert profile.matching(facts(host__virtual={"unread": "no"}))[0] == ("base", "training")


def test_a_lost_gpu_leaves_the_profile_of_the_others():
    lost = {"GPU0": {"unread": "NVML: GPU is lost"}, "GPU1": {"value": "NVIDIA GeForce RTX 4090"}}
    assert "workstation" in profile.matching(facts(gpu__names={"each": lost}))[0]
    assert "workstation" not in profile.matching(facts(gpu__names={"each": {"GPU0": lost["GPU0"]}}))[0]


def cards(count, model="NVIDIA RTX 6000 Ada Generation", **more):
    each = {f"GPU{number}": {"value": model} for number in range(count)}
    return facts(gpu__names={"each": each}, gpu__count={"value": count}, **more)


PORT = {"state": "ACTIVE", "link_layer": "InfiniBand", "virtual_function": False}


@pytest.mark.parametrize(
    "sign",
    [
        {"slurm__present": {"value": True}},
        {"kubernetes__present": {"value": True}},
        {"bmc__present": {"value": True}},
        {"bmc__faults": {"value": []}},
        {"rdma__ports": {"value": {"mlx5_0/1": PORT}}},
    ],
)
def test_a_server_with_rtx_cards_is_no_workstation(sign):
    assert "workstation" not in profile.matching(cards(2, **sign))[0]


def test_four_rtx_cards_make_a_server():
    assert "workstation" in profile.matching(cards(3))[0]
    assert "workstation" not in profile.matching(cards(4))[0]


def test_what_a_workstation_has_does_not_make_it_a_server():
    seen = {
        "slurm__present": {"value": False},
        "kubernetes__present": {"value": False},
        "bmc__present": {"value": False},
        "bmc__faults": {"absent": "no BMC interface (/dev/ipmi0)"},
        "rdma__ports": {"value": {"mlx5_0/1": {**PORT, "virtual_function": True}}},
    }
    assert "workstation" in profile.matching(cards(1, **seen))[0]


LINKS, NONE = {"value": {"active": [0, 1], "inactive": []}}, {"absent": "not supported"}


@pytest.mark.parametrize(
    ("links", "severity"),
    [
        ({"GPU0": NONE}, "low"),
        ({"GPU0": LINKS, "GPU1": LINKS}, "low"),
        ({"GPU0": NONE, "GPU1": NONE}, "high"),
        ({"GPU0": LINKS, "GPU1": LINKS, "GPU2": NONE}, "high"),
    ],
)
def test_an_iommu_that_translates_copies_between_the_gpus_of_a_workstation_is_as_severe_as_on_a_server(links, severity):
    seen = cards(len(links), gpu__nvlink_state={"each": links})
    resolved = profile.resolve(profile.matching(seen)[0])
    assert next(each for each in resolved.checks if each.id == "iommu-translates-dma").severity == severity
    assert "workstation" in resolved.names


def failing(check="a"):
    return Finding(check, "fail", "high")


WAIVER = Waiver("a", "gpu[001-004]", "vendor case 7", "ops", "2030-01-31")


@pytest.mark.parametrize(
    ("host", "today", "status"),
    [("gpu003", "2030-01-31", "waived"), ("gpu005", "2030-01-31", "fail"), ("gpu003", "2030-02-01", "fail")],
)
def test_a_waiver_covers_its_hosts_until_its_last_day(host, today, status):
    (found,) = waivers.waive([failing()], [WAIVER], host, today)
    assert found.status == status


def test_of_two_waivers_for_one_check_the_longer_counts():
    ended = replace(WAIVER, hosts="*", until="2029-01-01")
    (found,) = waivers.waive([failing()], [WAIVER, ended], "gpu003", "2030-01-31")
    assert found.status == "waived"


@pytest.mark.parametrize(
    ("pattern", "host", "covered"),
    [
        ("gpu[01-16]", "gpu06", True),
        ("gpu[01-16]", "gpu6", False),  # which the shell pattern of the same letters would name
        ("gpu[1,3],login*", "login2", True),
        ("gpu[1,3],login*", "gpu3", True),
        ("gpu?", "gpu7", True),
        ("gpu[1,3],login[!1]*", "gpu3", True),
        ("gpu[1,3],login[!1]*", "login1", False),
        ("gpu[1-9]!gpu3,login*", "gpu3", False),
        ("gpu1, gpu[5-6],", "gpu6", True),
    ],
)
def test_a_waiver_names_hosts_by_node_set_or_shell_pattern(pattern, host, covered):
    assert waivers.covers(pattern, host) is covered


def test_a_site_file_with_conditions_is_refused(tmp_path):
    found = site(tmp_path, "when:\n  - {fact: host.virtual, accept: true}\n")
    with pytest.raises(FileError, match="when has no effect in a site file"):
        profile.resolve(("base",), found)


def test_an_ended_waiver_says_that_it_ended():
    (found,) = waivers.waive([failing()], [WAIVER], "gpu003", "2031-01-01")
    assert found.reason == "the waiver of ops ended on 2030-01-31"


def test_the_shipped_profiles_and_the_published_schema_agree():
    schema = json.loads(paths.bundled("data/schemas").joinpath("site.json").read_text())
    files = {path.stem: path for path in profile.FOLDER.glob("*.yml")}
    assert {"base", "training"} <= files.keys()
    for path in files.values():
        jsonschema.validate(yaml.safe_load(path.read_text()), schema)
        site_file.read(path)


def test_every_shipped_override_changes_something():
    base = {check.id: check for check in profile.resolve(("base",)).checks}
    overrides = [
        (name, check_id, change)
        for name, overlay in profile.shipped().items()
        for check_id, change in overlay.checks.items()
        if isinstance(change, dict)
    ]
    assert len(overrides) > 5
    for name, check_id, change in overrides:
        changed = any(getattr(base[check_id], key) != each for key, each in change.items() if key != "gate")
        assert changed or "gate" in change, (name, check_id)


def test_a_check_that_is_off_stays_off_until_a_file_says_on(tmp_path):
    shipped_off = next(name for name, change in profile.shipped()["base"].checks.items() if change is False)
    assert shipped_off not in resolved(tmp_path, f"checks:\n  {shipped_off}: {{severity: low}}\n")
    assert shipped_off in resolved(tmp_path, f"checks:\n  {shipped_off}: on\n")


def test_a_named_profile_keeps_the_matching_profiles():
    names, reason = profile.matching(facts(host__virtual={"value": True}), ["inference"])
    assert names == ("base", "inference", "vm")
    assert reason == "as given; vm: a virtual machine"


def test_shipped_profiles_hold_nothing_reserved_for_sites():
    shipped = profile.shipped()
    assert {"base", "training"} <= set(shipped)
    assert [name for name, each in shipped.items() if each.profile or each.waivers or each.add] == []


def test_a_waiver_covers_hosts_with_long_numbers():
    assert waivers.covers("node[123456-123460]", "node123457")


@pytest.mark.parametrize(
    "pattern",
    [
        "gpu[1",
        "gpu1]",
        "login*,gpu[1",
        "gpu[1*",
        "gpu[1-99999999]",
        "gpu[a-c]",
        "gpu*!gpu3",
        "~gpu.*",
        "a* b*",
        "",
        ",",
    ],
)
def test_a_waiver_with_unreadable_hosts_is_refused(pattern):
    with pytest.raises(ValueError, match="write it like|are possible"):
        waivers.read(pattern)


def test_a_waiver_knows_no_groups_of_the_local_clustershell():
    with pytest.raises(ValueError, match="'@all' is not a host: write an inventory group under groups"):
        waivers.read("@all,gpu1")
    assert waivers.covers("all", "all")
