"""Figures become verdicts: the order of trust, peers by a robust statistic, the part to suspect, hostile records."""

import json
from dataclasses import replace

import pytest

from nodetune.facts import machine
from nodetune.foundation import json_document
from nodetune.statistics import outliers
from nodetune.verify import baseline, figures, findings, hardware_limits
from nodetune.verify.diagnosis import command, named
from nodetune.verify.evaluate import again, judge
from nodetune.verify.model import FAILED, PASS, SHORT, SKIP, UNKNOWN, Figure, Unmeasured, Verdict
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records

H200 = records.h200()
L4 = replace(H200, model="NVIDIA L4", gpus=1, fabric="pcie", links={})


def verdicts(found, machine=H200, own=None):
    hosts = {each.host for each in found}
    return judge(found, dict.fromkeys(hosts, machine), own)


def of(found, measurement, subject, metric=None, **about):
    (one,) = [
        each
        for each in found
        if (each.figure.measurement, each.figure.subject) == (measurement, subject)
        and metric in (None, each.figure.metric)
        and all(each.figure.about.get(key) == value for key, value in about.items())
    ]
    return one


def kept(found, machine=H200, tmp_path=None):
    return records.kept(found, tmp_path, machine)


def gpus(*values, measurement="gpu_copy", metric="h2d", better="higher", host="gpu1"):
    told = [
        records.record(measurement, metric, f"GPU{number}", value, better=better) for number, value in enumerate(values)
    ]
    return records.read(told, host)


def test_a_sound_node_passes_and_says_by_what():
    found = verdicts(records.read(records.whole()))
    assert {each.status for each in found} == {PASS, UNKNOWN}
    assert of(found, "gpu_memory", "GPU3").expected.kind == "shipped"
    assert of(found, "gpu_copy", "GPU3", "h2d", local=False).expected.kind == "siblings"
    assert of(found, "memory", "node0").status == UNKNOWN, "two nodes are too few to agree on anything"


TWO = replace(H200, gpus=2, numa_nodes=1)


@pytest.mark.parametrize("run", [1, 2, 3, 4, 5, 6])
def test_a_real_node_is_as_it_should_be(run):
    found = verdicts(records.recorded(run), TWO)
    assert {each.status for each in found} == {PASS, UNKNOWN}
    held = {each.figure.metric for each in found if each.status == PASS}
    assert held >= {"h2d", "d2h", "device_copy", "p2p", "p2p_both", "bf16", "bf16_sustained", "tflops"}
    assert all(0.3 < each.fraction < 1 for each in found if each.limit)


@pytest.mark.parametrize("run", [2, 3, 4, 5, 6])
def test_a_real_node_is_within_a_baseline_of_its_own_other_run(run, tmp_path):
    own = kept(records.recorded(1), TWO, tmp_path=tmp_path)
    assert {each.status for each in verdicts(records.recorded(run), TWO, own)} == {PASS}


def test_an_outlier_is_short_though_every_floor_lets_it_pass():
    found = verdicts(records.read(records.whole(**{"gpu_memory device_copy GPU5": 4080.0})))
    assert of(found, "gpu_memory", "GPU5").status == SHORT
    assert of(found, "gpu_memory", "GPU5").expected.provenance == "7 other GPUs: median 4262"
    assert sum(each.status == SHORT for each in found) == 1


def test_peers_that_are_all_slow_still_meet_the_shipped_floor():
    slow = gpus(*[26.0] * 8)
    assert {each.status for each in verdicts(slow)} == {PASS}, "no floor is for a node that is not known to be near"
    near = [replace(each, about={"local": True}) for each in slow]
    assert {each.status for each in verdicts(near)} == {SHORT}


def test_a_tiny_spread_raises_no_alarm():
    assert {each.status for each in verdicts(gpus(54.0, 54.0, 54.0, 54.0, 54.0, 54.0, 54.0, 53.0))} == {PASS}


def test_a_wide_spread_raises_no_alarm_for_its_tail():
    found = verdicts(gpus(50.0, 58.0, 46.0, 54.0, 62.0, 42.0, 52.0, 56.0), L4)
    assert {each.status for each in found} == {PASS}


@pytest.mark.parametrize(("deviations", "status"), [(3.0, PASS), (4.0, SHORT)])
def test_an_outlier_is_further_off_than_peers_usually_spread(deviations, status):
    """The median deviation of the others is 3 GB/s, which is a standard deviation of 4.45."""
    others = (47.0, 47.0, 47.0, 50.0, 53.0, 53.0, 53.0)
    assert [each.status for each in verdicts(gpus(*others, 50.0 - deviations * 4.45), L4)][-1] == status


def test_better_than_all_peers_is_no_fault():
    assert of(verdicts(gpus(54.0, 54.1, 54.2, 54.0, 80.0)), "gpu_copy", "GPU4").status == PASS
    quick = gpus(6.0, 6.1, 6.0, 6.2, 2.0, measurement="gpu_latency", metric="launch", better="lower")
    assert of(verdicts(quick), "gpu_latency", "GPU4").status == PASS


def test_of_two_or_three_the_one_far_below_the_best_stands_apart():
    assert [each.status for each in verdicts(gpus(54.0, 52.0), L4)] == [UNKNOWN, UNKNOWN]
    assert [each.status for each in verdicts(gpus(54.0, 40.0), L4)] == [UNKNOWN, SHORT]


@pytest.mark.parametrize(("count", "status"), [(2, UNKNOWN), (3, UNKNOWN), (4, PASS)])
def test_four_that_agree_are_a_majority(count, status):
    assert {each.status for each in verdicts(gpus(*[54.0] * count), L4)} == {status}


def test_one_gpu_alone_has_no_peers():
    assert outliers.among([54.0], 0.05, 1) is None


def test_a_host_with_all_gpus_slow_stands_apart_from_peers():
    hosts = {f"gpu{number}": 54.0 for number in range(1, 5)} | {"gpu5": 40.0}
    found = [each for host, value in hosts.items() for each in gpus(*[value] * 8, host=host)]
    short = [each for each in verdicts(found) if each.status == SHORT]
    assert {each.figure.host for each in short} == {"gpu5"}
    assert "4 other like hosts" in short[0].expected.provenance


def test_hosts_of_another_kind_are_no_peers():
    hosts = {"a": 54.0, "b": 54.0, "c": 54.0, "d": 54.0, "old": 20.0}
    found = [each for host, value in hosts.items() for each in gpus(value, host=host)]
    machines = {host: replace(L4, cpu=host if host == "old" else "") for host in hosts}
    judged = judge(found, machines)
    assert judged
    assert not any(each.status == SHORT for each in judged)


def test_a_baseline_decides_before_anything_else(tmp_path):
    good = records.read(records.whole())
    own = kept(good, tmp_path=tmp_path)
    found = verdicts(good, own=own)
    assert {each.status for each in found} == {PASS}
    assert {each.expected.kind for each in found} == {"baseline"}
    worse = records.read(records.whole(**{"nccl all_reduce 8 GPUs": 340.0}))
    assert of(verdicts(worse, own=own), "nccl", "8 GPUs", "all_reduce", size=8 << 30).status == SHORT


def test_a_baseline_of_what_is_slow_here_lets_that_pass(tmp_path):
    here = gpus(*[30.0] * 8)
    assert {each.status for each in verdicts(here, own=kept(here, tmp_path=tmp_path))} == {PASS}


@pytest.mark.parametrize(
    "other", [{"model": "NVIDIA H100 80GB HBM3"}, {"gpus": 4}, {"fabric": "pcie"}], ids=["model", "count", "fabric"]
)
def test_a_baseline_holds_for_like_hosts_only(other, tmp_path):
    good = gpus(*[54.0] * 8)
    own = kept(good, tmp_path=tmp_path)
    assert own.expectation(good[0], H200)
    assert own.expectation(good[0], replace(H200, **other)) is None


@pytest.mark.parametrize("other", [{"nvls": True}, {"nccl": "2.27.7"}, {"size": 1 << 30}, {"nodes": 2}])
def test_a_baseline_holds_for_like_conditions_only(other, tmp_path):
    about = {**records.NCCL, "size": 8 << 30}
    good = records.read([records.record("nccl", "all_reduce", "8 GPUs", 367.0, **about)])
    own = kept(good, tmp_path=tmp_path)
    changed = replace(good[0], about={**about, **other})
    assert own.expectation(changed, H200) is None
    assert own.expectation(replace(good[0], about={**about, "nccl": "2.28.3", "channels": 24}), H200)


def test_pairs_behind_a_switch_are_alike_bridged_ones_not():
    (pair,) = records.read([records.record("gpu_p2p", "p2p", "GPU0→GPU5", 393.0)])
    assert baseline.subject(pair, H200) == "GPU→GPU"
    assert baseline.subject(pair, replace(H200, fabric="nvlink")) == "GPU0→GPU5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no", "not JSON"),
        ('{"schema": "nodetune.audit/1", "figures": []}', "not a nodetune.baseline/1 document"),
        ('{"schema": "nodetune.baseline/1", "figures": [{"measurement": "x"}]}', "figure 1 is not understood"),
        ('{"schema": "nodetune.baseline/1", "figures": [7]}', "figure 1 is not understood"),
    ],
)
def test_a_baseline_that_is_none_is_told_in_one_line(text, message, tmp_path):
    path = tmp_path / "site.json"
    path.write_text(text)
    with pytest.raises(json_document.DocumentError, match=message) as told:
        baseline.read(path)
    assert "\n" not in str(told.value)
    assert str(path) in str(told.value)


def test_only_what_is_short_twice_is_blamed():
    (short,) = [each for each in verdicts(gpus(54.0, 54.0, 54.0, 54.0, 20.0)) if each.status == SHORT]
    better = replace(short.figure, runs=((54.0,),))
    assert again(short, better).status == PASS
    assert again(short, better).again == (20.0,)
    confirmed = again(short, replace(short.figure, runs=((21.0,),)))
    assert (confirmed.status, confirmed.again) == (SHORT, (21.0,))
    many = replace(short, figure=replace(short.figure, runs=((20.0,), (19.0,), (21.0,))))
    assert again(many, better).figure.runs == (*many.figure.runs, *better.runs), "--compare needs every run"
    assert again(short, None).status == SHORT
    assert again(short, None).reason == "it could not be measured again"


def suspect(machine=H200, **planted):
    found = named(verdicts(records.read(records.whole(**planted)), machine), [], machine)
    (text,) = {each.suspect for each in found if each.status == SHORT}
    return text


def test_a_link_that_lost_lanes_is_the_suspect():
    narrow = {**H200.links["GPU2"], "width": 8, "most_width": 16}
    machine = replace(H200, links={**H200.links, "GPU2": narrow})
    assert "PCIe link (0000:52:00.0): x8 where x16 is possible" in suspect(machine, **{"gpu_copy h2d GPU2": 26.0})


def test_a_slow_pair_of_sound_gpus_is_the_path_between_them():
    text = suspect(**{"gpu_p2p p2p GPU3→GPU5": 200.0})
    assert text == "the NVSwitch between GPU3 and GPU5: both are fast with other partners"


def test_a_gpu_that_is_slow_with_every_partner_is_the_suspect():
    planted = {f"gpu_p2p p2p GPU{one}→GPU{other}": 200.0 for one in range(8) for other in range(8) if 3 in (one, other)}
    machine = replace(H200, nvlinks={**dict.fromkeys(H200.nvlinks, 18), "GPU3": 12})
    assert suspect(machine, **planted).startswith("GPU3: it is slow with every partner; its NVLinks (12 of 18 active)")


def test_when_all_are_slow_no_part_is_blamed():
    assert "no single part" in suspect(**{f"gpu_memory device_copy GPU{gpu}": 3000.0 for gpu in range(8)})


def test_slow_far_memory_points_between_the_numa_nodes():
    told = [
        {**each, "samples": [20.0] * 5} if each["subject"] == "GPU1" and each["about"].get("local") is False else each
        for each in records.whole()
    ]
    found = named(verdicts(records.read(told)), [], H200)
    assert {each.suspect for each in found if each.status == SHORT} == {
        "the link between the NUMA nodes: GPU1 is fast enough from its own NUMA node"
    }


def rdma(**slow):
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    return [
        each
        for one, other in pairs
        for port in ("mlx5_0/1", "mlx5_1/1")
        for each in records.read(
            [
                records.record(
                    "rdma",
                    "rdma",
                    f"{port} {one}→{other}",
                    slow.get(f"{port} {one}→{other}", 392.0),
                    "Gb/s",
                    rate=400.0,
                )
            ],
            one,
        )
    ]


def test_a_port_that_is_slow_with_each_partner_is_the_suspect():
    found = verdicts(rdma(**{"mlx5_0/1 a→b": 180.0, "mlx5_0/1 d→a": 180.0}))
    assert [each.figure.subject for each in found if each.status == SHORT] == ["mlx5_0/1 a→b", "mlx5_0/1 d→a"]
    texts = {each.suspect for each in named(found, [], H200) if each.status == SHORT}
    assert texts == {"a: its port mlx5_0/1, cable or switch port; it is slow with b and d"}


def test_a_slow_link_between_sound_hosts_is_the_suspect():
    found = verdicts(rdma(**{"mlx5_0/1 a→b": 180.0}))
    (text,) = [each.suspect for each in named(found, [], H200) if each.status == SHORT]
    assert text == "the link between a and b: cable, switch port, routing"


def test_the_command_measures_just_that_part_again():
    (pair,) = records.read([records.record("gpu_p2p", "p2p", "GPU3→GPU5", 1.0)])
    full, quick = SuiteRequest("full"), SuiteRequest()
    (together,) = records.read([records.record("gpu_copy", "h2d", "GPU1", 1.0, together=True)])
    assert command(together, "", full) == "nodetune verify --only gpu_copy", "one GPU is not all of them together"
    assert command(pair, "-i prod -b", full) == "nodetune verify -i prod -b -l gpu1 --only gpu_p2p --gpu 3 --gpu 5"
    assert command(pair, "", quick) == "nodetune verify --suite quick --only gpu_p2p --gpu 3 --gpu 5"
    (port,) = records.read([records.record("rdma", "rdma", "mlx5_0/1 a→b", 1.0)])
    assert command(port, "-i prod", full) == "nodetune verify -i prod -l a,b --only rdma"
    assert command(port, "-i prod -l 'a,b,c' -b", full) == "nodetune verify -i prod -l a,b -b --only rdma"


def test_two_gpus_alone_are_not_called_sound_with_others():
    (both,) = records.read([records.record("gpu_p2p", "p2p_both", "GPU0↔GPU1", 100.0)])
    (one,) = named([Verdict(both, SHORT)], [], H200)
    assert one.suspect == "the NVSwitch between GPU0 and GPU1"


def test_the_command_has_the_options_that_the_figure_hangs_on():
    wanted = SuiteRequest(
        "full", disk="/my data", network="10.1.0.0/16", nccl="/sw/nccl", env={"NCCL_NVLS_ENABLE": "0"}
    )
    told = records.record("disk", "read", "/my data", 1.0), records.record("tcp", "tcp", "a→b", 1.0)
    disk, tcp = records.read(told)
    env = "--env NCCL_NVLS_ENABLE=0"
    assert command(disk, "", wanted) == f"nodetune verify --only disk --disk '/my data' {env}"
    assert command(tcp, "-i p", wanted) == f"nodetune verify -i p -l a,b --only tcp --network 10.1.0.0/16 {env}"
    many = records.record("nccl", "all_reduce", "2 nodes of 8 GPUs", 1.0, **{**records.NCCL, "nodes": 2})
    (all_hosts,) = records.read([many])
    again = f"nodetune verify -i p -l x,y --only nccl --nccl /sw/nccl --multi-node {env}"
    assert command(all_hosts, "-i p -l x,y", wanted) == again, "one host of several would measure something else"


@pytest.mark.parametrize("suite", ["quick", "full", "nccl"])
def test_a_reproduced_measurement_has_its_suite_options(suite):
    assert SuiteRequest(suite).items
    for item in SuiteRequest(suite).items:
        words = SuiteRequest(suite).words_for(item["name"], together=False)
        named = words[words.index("--suite") + 1] if "--suite" in words else "full"
        assert SuiteRequest(named, only=(item["name"],)).items == [item]


def told(env=None, machine=H200, **about):
    (figure,) = records.read([records.record("nccl", "all_reduce", "8 GPUs", 300.0, **{**records.NCCL, **about})])
    return {each.title: each.status for each in findings.findings([figure], {"gpu1": machine}, env or {})}


def test_nccl_through_host_memory_despite_nvlink_is_a_fault():
    assert told(transport="P2P+SHM", nvls=True) == {"NCCL went over SHM between GPUs that NVLink joins": "short"}
    assert told(transport="SHM", nvls=True, machine=replace(H200, fabric="pcie")) == {}
    assert list(told({"NCCL_P2P_DISABLE": "1"}, transport="NET/Socket", nvls=True).values()) == ["note"]


def test_sockets_where_there_are_adapters_are_a_fault():
    machine = replace(H200, hcas=("mlx5_0/1",))
    (title,) = told(machine=machine, transport="NET/Socket", nodes=2)
    assert title == "NCCL went over TCP sockets although there are HCAs (mlx5_0/1)"
    assert told(machine=replace(H200, hcas=()), transport="NET/Socket", nodes=2) == {}
    assert told(machine=machine, transport="NET/IB", nodes=2) == {}
    by_choice = told(machine=machine, transport="NET/Socket", nodes=2, settings={"NCCL_IB_DISABLE": "1"})
    assert list(by_choice.values()) == ["note"]


def test_nvls_that_is_off_is_a_fault_unless_wanted():
    assert list(told().values()) == ["short"]
    assert list(told({"NCCL_NVLS_ENABLE": "0"}).values()) == ["note"]
    assert told(nvls=True) == {}
    assert told(gpus=2) == {}
    assert told(machine=replace(H200, model="NVIDIA A100-SXM4-80GB")) == {}


def test_heat_is_a_gpu_fault_and_its_power_limit_is_not():
    def load(**reasons):
        (figure,) = records.read([records.record("gpu_load", "tflops", "GPU2", 600.0, "TFLOP/s", reasons=reasons)])
        return [each.title for each in findings.findings([figure], {"gpu1": H200}, {})]

    assert load(hw_thermal_slowdown=0.4) == ["throttled under load: too hot (hw_thermal_slowdown)"]
    assert load(sw_power_cap=1.0, hw_slowdown=0.0) == []


@pytest.mark.parametrize(("share", "noted"), [(0.02, True), (0.005, False), (None, False), ("x", False)])
def test_a_pair_that_loses_segments_is_noted_and_no_fault(share, noted):
    figure = Figure("a", "tcp", "tcp", "a→b", ((9.0,),), "Gb/s", about={"retransmitted": share})
    found = findings.findings([figure], {"a": machine.UNKNOWN}, {})
    assert [each.status for each in found] == ["note"] * noted


def test_data_that_came_back_wrong_is_a_fault_of_its_own():
    missing = [Unmeasured("gpu1", "gpu_copy", FAILED, "data came back wrong: 3 words", "", "GPU1")]
    assert findings.wrong_data(missing)[0].status == SHORT
    load = replace(
        missing[0], measurement="gpu_load", reason="GPU1: computed wrongly: 3 of 528 warps had a different result"
    )
    assert findings.wrong_data([load])[0].next == "take this GPU out of service"
    host = replace(missing[0], measurement="memory", subject="")
    (found,) = findings.wrong_data([host])
    assert (found.subjects, found.next.partition(";")[0]) == ((), "take this host out of service")
    assert findings.wrong_data([replace(missing[0], reason="out of memory")]) == []


@pytest.mark.parametrize(
    "record",
    [
        None,
        7,
        [],
        {},
        {"measurement": "memory"},
        {"measurement": "memory", "subject": "node0", "samples": []},
        {"measurement": "memory", "subject": "node0", "samples": [float("nan")]},
        {"measurement": "memory", "subject": "node0", "samples": [float("inf")]},
        {"measurement": "memory", "subject": "node0", "samples": [10**400]},
        {"measurement": "memory", "subject": "node0", "samples": [1e308, 1e308]},
        {"measurement": "memory", "subject": "node0", "samples": [-1.0]},
        {"measurement": "memory", "subject": "node0", "samples": [True]},
        {"measurement": "memory", "subject": "node0", "samples": ["1"]},
        {"measurement": "memory", "subject": "node0", "samples": [1.0] * 10_001},
        {"measurement": "memory", "subject": "node0", "samples": [1.0], "better": "faster"},
        {"measurement": ["memory"], "subject": "node0", "samples": [1.0]},
    ],
)
def test_a_record_that_is_none_is_a_measurement_that_failed(record):
    found = figures.read("gpu1", record)
    assert isinstance(found, Unmeasured)
    assert found.status == FAILED


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan")])
def test_a_number_that_no_float_holds_says_nothing(number):
    record = {"measurement": "rdma", "subject": "mlx5_0", "unit": "Gb/s", "samples": [1], "about": {"rate": number}}
    found = figures.read("gpu1", record)
    assert found.about == {"rate": None}
    assert hardware_limits.of(found, machine.UNKNOWN) is None


def test_texts_of_a_host_are_made_safe():
    found = figures.read(
        "gpu1",
        {
            "measurement": "memory",
            "subject": "node0\x1b[2J",
            "samples": [1],
            "about": {"a\n": "b\x07", "deep": [[[[[[1]]]]]]},
        },
    )
    assert isinstance(found, Figure)
    assert found.subject == "node0\\x1b[2J"
    assert json.dumps(found.about).isprintable()
    assert figures.read("gpu1", {"measurement": "x", "skip": "no\x1b tool"}).reason == "no\\x1b tool"
    assert figures.read("gpu1", {"measurement": "x", "skip": "no tool"}).status == SKIP


def test_the_statistic_is_the_median_unless_the_record_differs():
    runs = ((1.0, 2.0, 9.0),)
    figure = Figure("gpu1", "jitter", "longest", "cpu0", runs, "µs", "lower")
    assert figure.value == 2.0
    assert replace(figure, about={"statistic": "max"}).value == 9.0


def test_runs_of_a_figure_are_separate_and_medians_count():
    both = records.read(
        [records.record("memory", "local", "node0", 400.0), records.record("memory", "local", "node0", 300.0)]
    )
    assert len(both) == 1
    assert both[0].by_run == (400.0, 300.0)
    assert both[0].value == 350.0
