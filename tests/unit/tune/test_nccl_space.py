"""Which variables of NCCL are tuned on which hosts, and that each stays within what the user guide documents."""

import pytest

from nodetune.checks.shared.nccl_table import table, variables
from nodetune.tune import space
from nodetune.tune.benches import nccl_space
from nodetune.tune.benches.nccl_space import KNOBS, Survey

NEW = "2.28.9"
NVLINK = Survey(NEW, transport="P2P", link="NVL", nvls=True, gpus=8)
PCIE = Survey(NEW, transport="P2P+SHM", link="PHB", gpus=4)
FABRIC = Survey(NEW, transport="NET/IB+P2P", link="NVL", nodes=4, gpus=32, nics=("mlx5_0:1", "mlx5_1:1"), roce=False)
TCP = Survey(NEW, transport="NET/Socket+P2P", link="NVL", nodes=2, gpus=16, nics=("eth0",))


def names(survey, objective="bandwidth", only=()):
    return {each.name for each in nccl_space.parameters(survey, objective, only)[0]}


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_every_choice_is_documented_by_the_guide(knob):
    about = variables()[knob.name]
    assert about["kind"] in ("setting", "debugging"), "internal, deprecated and experimental ones are never tuned"
    if about["type"] == "level":
        assert set(knob.choices) <= set(table()["levels"])
    if about["type"] == "flag":
        assert set(knob.choices) <= {0, 1}
    if "values" in about:
        assert set(knob.choices) <= set(about["values"])
    low, high = about.get("range", [None, None])
    assert all((low is None or each >= low) and (high is None or each <= high) for each in knob.choices if low or high)
    if about["type"] == "bytes":
        assert all(each & (each - 1) == 0 for each in knob.choices), "the guide recommends powers of 2"
    assert about.get("default") not in knob.choices


def test_protocols_chunks_and_harmful_values_are_never_tuned():
    assert not {knob.name for knob in KNOBS} & {"NCCL_PROTO", "NCCL_ALGO", "NCCL_P2P_NET_CHUNKSIZE"}
    assert not [knob.name for knob in KNOBS if "CHUNK" in knob.name]
    for knob in KNOBS:
        assert not set(map(str, knob.choices)) & set(map(str, variables()[knob.name].get("risky_at", ())))


def test_only_hosts_with_rdma_or_sockets_get_a_variable_of_it():
    assert names(NVLINK) == {"NCCL_MIN_CTAS", "NCCL_BUFFSIZE", "NCCL_NVLS_ENABLE"}
    assert names(PCIE) == {"NCCL_MIN_CTAS", "NCCL_BUFFSIZE", "NCCL_P2P_LEVEL"}
    assert names(TCP) == {"NCCL_MIN_CTAS", "NCCL_BUFFSIZE", "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"}
    assert names(FABRIC) >= {"NCCL_NET_GDR_LEVEL", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_SPLIT_DATA_ON_QPS"}
    assert names(FABRIC) >= {"NCCL_PXN_DISABLE", "NCCL_P2P_PXN_LEVEL", "NCCL_CROSS_NIC", "NCCL_IB_ADAPTIVE_ROUTING"}
    assert "NCCL_IB_MERGE_NICS" not in names(FABRIC)
    assert "NCCL_SOCKET_NTHREADS" not in names(FABRIC)


def test_an_objective_has_its_own_variables():
    assert "NCCL_MAX_CTAS" in names(NVLINK, "overlap")
    assert "NCCL_MAX_CTAS" not in names(NVLINK, "bandwidth")
    assert names(NVLINK, "latency") == {"NCCL_NVLS_ENABLE"}


def test_nvls_that_the_site_switched_off_stays_off():
    off = Survey(NEW, transport="P2P", link="NVL", nvls=False, set={"NCCL_NVLS_ENABLE": "0"})
    assert "NCCL_NVLS_ENABLE" not in names(off)
    assert nccl_space.parameters(off, "bandwidth")[1]["NCCL_NVLS_ENABLE"] == "the site has set NCCL_NVLS_ENABLE=0"
    assert "NCCL_NVLS_ENABLE" not in names(off, only=("NCCL_NVLS_ENABLE",))
    odd = Survey(NEW, transport="P2P", link="NVL", nvls=True, set={"NCCL_NVLS_ENABLE": "2"})
    assert "NCCL_NVLS_ENABLE" not in names(odd, only=("NCCL_NVLS_ENABLE",))


def test_what_the_installed_release_does_not_have_is_left_out():
    old = Survey("2.16.2", transport="P2P", link="NVL")
    found, left = nccl_space.parameters(old, "bandwidth")
    assert [each.name for each in found] == ["NCCL_MIN_NCHANNELS", "NCCL_BUFFSIZE"]
    assert left["NCCL_NVLS_ENABLE"] == "NCCL 2.16.2 does not have it"
    by_name = {each.name: each.choices for each in nccl_space.parameters(Survey("2.24.3"), "bandwidth")[0]}
    assert max(by_name["NCCL_MIN_CTAS"]) == 32, "64 came with 2.25"
    assert (
        max({each.name: each.choices for each in nccl_space.parameters(NVLINK, "bandwidth")[0]}["NCCL_MIN_CTAS"]) == 64
    )


def test_an_old_name_that_is_set_counts_as_set():
    found, left = nccl_space.parameters(Survey(NEW, set={"NCCL_MIN_NCHANNELS": "32"}), "bandwidth")
    assert "NCCL_MIN_CTAS" not in {each.name for each in found}
    assert "NCCL_MIN_NCHANNELS=32" in left["NCCL_MIN_CTAS"]


@pytest.mark.parametrize(("roce", "choices"), [(False, (0,)), (True, (1,)), (None, (0, 1))])
def test_the_default_of_adaptive_routing_is_no_choice(roce, choices):
    survey = Survey(NEW, transport="NET/IB", nodes=2, roce=roce)
    by_name = {each.name: each.choices for each in nccl_space.parameters(survey, "bandwidth")[0]}
    assert by_name["NCCL_IB_ADAPTIVE_ROUTING"] == choices


@pytest.mark.parametrize(
    ("setting", "given", "allowed"),
    [
        ({"NCCL_MIN_CTAS": 16, "NCCL_MAX_CTAS": 16}, {}, True),
        ({"NCCL_MIN_CTAS": 16, "NCCL_MAX_CTAS": 8}, {}, False),
        ({"NCCL_MIN_CTAS": 16}, {"NCCL_MAX_CTAS": "8"}, False),
        ({"NCCL_MIN_CTAS": 16}, {"NCCL_MAX_NCHANNELS": "8"}, False),
        ({"NCCL_SOCKET_NTHREADS": 8, "NCCL_NSOCKS_PERTHREAD": 8}, {}, True),
        ({"NCCL_SOCKET_NTHREADS": 8}, {"NCCL_NSOCKS_PERTHREAD": "16"}, False),
        ({"NCCL_IB_SPLIT_DATA_ON_QPS": 1}, {}, False),
        ({"NCCL_IB_SPLIT_DATA_ON_QPS": 1, "NCCL_IB_QPS_PER_CONNECTION": 4}, {}, True),
        ({"NCCL_IB_SPLIT_DATA_ON_QPS": 1}, {"NCCL_IB_QPS_PER_CONNECTION": "4"}, True),
        ({"NCCL_PXN_DISABLE": 1, "NCCL_P2P_PXN_LEVEL": 1}, {}, False),
        ({"NCCL_MIN_CTAS": 16}, {"NCCL_MAX_CTAS": "many"}, True),
    ],
)
def test_values_that_contradict_each_other_are_not_tried(setting, given, allowed):
    assert nccl_space.allowed(tuple(sorted(setting.items())), Survey(NEW, set=given)) is allowed


def test_algorithms_are_for_the_plugin_one_collective_at_a_time():
    (parameter,) = nccl_space.algorithms(NVLINK, ("all_reduce", "all_gather", "alltoall"))
    assert parameter.choices == (
        "allreduce:ring",
        "allreduce:tree",
        "allreduce:nvls",
        "allgather:ring",
        "allgather:nvls",
    )
    assert "allgather:pat" in nccl_space.algorithms(FABRIC, ("all_gather",))[0].choices
    assert not nccl_space.algorithms(Survey("2.23.4"), ("all_reduce",))
    assert not nccl_space.algorithms(Survey(NEW, set={"NCCL_ALGO": "Ring"}), ("all_reduce",))


@pytest.mark.parametrize("survey", [NVLINK, PCIE, FABRIC, TCP], ids=["nvlink", "pcie", "fabric", "tcp"])
@pytest.mark.parametrize("objective", ["bandwidth", "overlap", "latency"])
def test_every_choice_of_a_host_is_tried(survey, objective):
    parameters, _ = nccl_space.parameters(survey, objective)

    class Bench:
        def __init__(self):
            self.parameters = parameters

        def allowed(self, setting):
            return nccl_space.allowed(setting, survey)

    tried = {pair for setting in space.first(Bench()) for pair in setting}
    assert tried == {(each.name, choice) for each in parameters for choice in each.choices}
