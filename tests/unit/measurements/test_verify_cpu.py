"""Wake-ups, isolation and the latency of memory, measured for real on this machine; and the arithmetic of them."""

import contextlib
import ctypes
import json
import os
import platform
from types import SimpleNamespace

import pytest

from nodetune.facts import machine
from nodetune.measurements import clock, jitter, memory, memory_latency, wakeup
from nodetune.measurements.host import numa, on_cpus
from nodetune.measurements.host import report as reporting
from nodetune.verify.evaluate import judge
from nodetune.verify.model import SHORT, Figure
from tests.unit.measurements.test_verify_host import measured

CPU = min(os.sched_getaffinity(0))


# Wake-ups


def test_each_core_tells_how_late_it_wakes_up():
    found = measured("wakeup", seconds=0.3, repeats=2, period=0.002)
    assert {record["subject"] for record in found} <= {f"cpu{cpu}" for cpu in os.sched_getaffinity(0)}
    by_metric = {record["metric"]: record for record in found if record["subject"] == f"cpu{CPU}"}
    assert list(by_metric) == ["median", "p99", "longest"]
    assert all(record["better"] == "lower" and len(record["samples"]) == 2 for record in by_metric.values())
    first = [record["samples"][0] for record in by_metric.values()]
    assert 0 < first[0] <= first[1] <= first[2]
    assert by_metric["longest"]["about"]["statistic"] == "max"
    assert by_metric["median"]["about"]["wakeups"] > 10


def test_places_of_the_wake_ups():
    found = wakeup.summary([float(number) for number in range(200, 0, -1)])
    assert found == {"median": 101.0, "p99": 199.0, "longest": 200.0, "count": 200}
    assert wakeup.summary([3.0])["p99"] == 3.0


def test_only_idle_states_that_are_on_are_told(tmp_path, monkeypatch):
    for number, (name, latency, disable) in enumerate([("POLL", 0, 0), ("C1E", 10, 0), ("C6", 133, 1)]):
        state = tmp_path / f"state{number}"
        state.mkdir()
        for file, text in (("name", name), ("latency", latency), ("disable", disable)):
            (state / file).write_text(f"{text}\n")
    monkeypatch.setattr(wakeup.glob, "glob", lambda _: [str(each) for each in tmp_path.iterdir()])
    monkeypatch.setattr(wakeup, "IDLE", "/nonexistent/")
    assert wakeup.idle(3) == {"idle_states": {"POLL": 0, "C1E": 10}}


# Chosen CPUs, and busy services beside them


@pytest.mark.parametrize("given", ["x", [None], ["a"], "3;4"])
def test_cpus_that_are_none_are_told(given):
    with pytest.raises(reporting.MeasurementError, match="write CPUs as"):
        on_cpus.chosen({"cpus": given})


def test_cpus_are_named_as_the_kernel_writes_them():
    assert on_cpus.chosen({"cpus": "4-6,2"}) == on_cpus.chosen({"cpus": [6, 5, 4, 2, 2]}) == [2, 4, 5, 6]
    assert set(on_cpus.chosen({"smt": True})) >= set(os.sched_getaffinity(0))


def test_isolated_cpus_and_those_kept_from_services_stay_free(tmp_path, monkeypatch):
    for name, text in (("SERVICES", "0-1"), ("ONLINE", "0-3"), ("ISOLATED", "7")):
        (tmp_path / name).write_text(text + "\n")
        monkeypatch.setattr(on_cpus, name, str(tmp_path / name))
    assert on_cpus.of_services({}) == [0, 1]
    assert on_cpus.kept_free() == {2, 3, 7}
    assert set(on_cpus.chosen({})) >= {2, 3, 7}, "jobs run there, so they are measured"
    (tmp_path / "SERVICES").unlink()
    assert on_cpus.kept_free() == {7}
    assert on_cpus.of_services({}) == sorted(numa.ALLOWED)


def test_a_cpu_where_nothing_may_run_is_skipped_others_measured():
    found = {record["subject"]: record for record in measured("jitter", seconds=0.1, repeats=1, cpus=[CPU, 1023])}
    assert found["cpu1023"]["skip"].startswith("a process of this session may not run there")
    assert found[f"cpu{CPU}"]["samples"]


def test_one_reading_in_a_thousand_may_be_later_than_the_999th_permille():
    told = jitter.gaps([5e-6, 3e-6, 9e-6, 7e-6], 2000, 1e-6, 2.0)
    assert told == {"longest": 9e-6, "p999": 5e-6, "at_most": False, "lost": pytest.approx(12e-6)}
    told = jitter.gaps([5e-6, 3e-6], 2000, 1e-6, 2.0)
    assert (told["p999"], told["at_most"]) == (1e-6, True)


def test_services_are_seen_on_the_cpu_that_they_run_on_only():
    """The tasks are kept on one CPU, as system.slice with AllowedCPUs keeps them."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("it takes two CPUs")
    preempted = {}
    for services in cpus[:2]:
        found = measured("jitter", seconds=1.0, repeats=1, load=True, cpus=[cpus[1]], services=str(services))
        by_metric = {record["metric"]: record for record in found}
        assert by_metric["lost"]["about"]["load"] == "system tasks"
        preempted[services] = by_metric["longest"]["about"]["preempted"]
    assert preempted[cpus[1]] > 0


def test_system_tasks_are_kept_where_they_are_told_and_end():
    before = os.sched_getaffinity(0)
    with on_cpus.Tasks([CPU]) as tasks:
        assert [os.sched_getaffinity(pid) for pid in tasks._pids] == [{CPU}]
        pids = list(tasks._pids)
    assert os.sched_getaffinity(0) == before
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_system_tasks_that_cannot_run_there_are_an_error():
    with (
        pytest.raises(reporting.MeasurementError, match="system tasks cannot be simulated here"),
        on_cpus.Tasks([1023]),
    ):
        pass


# The latency of memory


@pytest.fixture
def follow():
    try:
        return memory_latency.Follow()
    except reporting.SkipError as reason:
        pytest.skip(str(reason))


def test_every_line_is_met_once_before_any_is_met_again(follow):
    with memory_latency.Lines(follow.libc, 1 << 20) as lines:
        start, count = lines.at, (1 << 20) // memory_latency.LINE
        met, at = set(), start
        for _ in range(count):
            met.add(at)
            at = ctypes.c_uint64.from_address(at).value
        assert at == start, "the way through the buffer is one circle"
        assert len(met) == count
        assert follow._run(start, count) == start
        assert follow._run(start, 1) == ctypes.c_uint64.from_address(start).value != start


def test_no_step_leads_to_a_line_nearby():
    count = 1 << 16
    near = sum(abs(((memory_latency.STEP * line + 1) & (count - 1)) - line) < 64 for line in range(count))
    assert near / count < 0.005, "a prefetcher that takes neighbours does not help"


def test_the_latency_of_each_node_is_measured():
    if platform.machine() not in memory_latency.CODE:
        pytest.skip("no code for this CPU")
    found = measured("memory_latency", repeats=2, steps=100_000)
    nodes = numa.nodes()
    assert len(found) == len(nodes) ** 2
    for record in found:
        assert record["unit"] == "ns"
        assert record["better"] == "lower"
        assert len(record["samples"]) == 2
        assert 1 < min(record["samples"]) < 100_000
        assert record["about"]["local"] is ("→" not in record["subject"])


def test_far_memory_is_also_told_in_per_cent_of_near(monkeypatch):
    times, told = {(0, 0): 90.0, (0, 1): 180.0, (1, 0): 153.0}, []

    def one(_report, _follow, _options, what):
        if what[3:] == (1, 1):
            raise reporting.MeasurementError("too little memory")
        return times[what[3:]]

    monkeypatch.setattr(memory_latency, "_one", one)
    monkeypatch.setattr(memory_latency, "Follow", lambda: None)
    monkeypatch.setattr(numa, "nodes", lambda: {0: [CPU], 1: [CPU]})
    nothing = lambda *_: None  # noqa: E731
    report = SimpleNamespace(step=nothing, failed=nothing, result=lambda *figure, **_: told.append(figure))
    memory_latency.measure({}, report)
    assert told == [("node0→node1", [200.0], "%", "lower")], "a node whose own memory failed has no share"


def test_a_buffer_of_memory_takes_longer_than_one_of_the_cache(follow):
    taken = []
    for size in (1 << 16, 1 << 27):
        with memory_latency.Lines(follow.libc, size) as lines:
            taken.append(min(follow.nanoseconds(lines, 300_000) for _ in range(3)))
    assert taken[1] > 3 * taken[0], taken


def test_an_unknown_cpu_is_skipped(monkeypatch):
    monkeypatch.setattr(memory_latency.platform, "machine", lambda: "riscv64")
    with pytest.raises(reporting.SkipError, match="no code for this type of CPU"):
        memory_latency.Follow()


def test_the_buffer_exceeds_the_cache_and_leaves_memory_free():
    assert memory_latency.size_for(32 << 20, 64 << 30) == 128 << 20
    assert memory_latency.size_for(1 << 20, 64 << 30) == memory_latency.MIN_BYTES
    assert memory_latency.size_for(1 << 30, 64 << 30) == memory_latency.MAX_BYTES
    with pytest.raises(reporting.MeasurementError, match="only 100 MiB"):
        memory_latency.size_for(32 << 20, 100 << 20)


def test_a_far_node_is_no_peer_of_a_near_one():
    """Eight near nodes at 100 ns and far ones at 180: none of the far ones is slow."""
    near = [
        Figure("a", "memory_latency", "x", f"node{number}", ((100.0,),), "ns", "lower", {"local": True})
        for number in range(4)
    ]
    far = [
        Figure("a", "memory_latency", "x", f"node{one}→node{one + 1}", ((180.0,),), "ns", "lower") for one in range(4)
    ]
    assert not [each for each in judge(near + far, {"a": machine.UNKNOWN}) if each.status == SHORT]


def test_the_full_suite_has_every_pair_of_nodes():
    from nodetune.verify import suites

    options = {item["name"]: item["options"] for item in suites.suite("full")}
    assert options["memory"] == {"remote": "all"}
    assert "memory_latency" in options
    assert memory.far_pairs([0, 1], options["memory"]["remote"]) == [(0, 1), (1, 0)]


# The clock


def test_one_core_alone_is_a_figure_of_its_own(tmp_path, monkeypatch):
    """Two cores whose clock falls from 4 to 3 GHz when both work, as the kernel's files would tell it."""
    monkeypatch.setattr(clock, "_reader", lambda _: lambda cpus: dict.fromkeys(cpus, 4.0 if len(cpus) == 1 else 3.0))
    monkeypatch.setattr(clock, "stated", lambda _: {"max": 4.0, "allowed": 4.0})
    monkeypatch.setattr(clock, "Load", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(clock, "WARM_SECONDS", 0.0)
    with (tmp_path / "told").open("wb") as out:
        clock.measure({"cpus": [0, 1], "single": [0], "readings": 1}, reporting.Report("clock", out.fileno()))
    told = [each for kind, each in map(json.loads, (tmp_path / "told").read_text().splitlines()) if kind == "record"]
    found = {(each["metric"], each["subject"]): (each["samples"], each["about"]["of_allowed"]) for each in told}
    assert found == {
        ("clock", "cpu0"): ([3.0], 0.75),
        ("clock", "cpu1"): ([3.0], 0.75),
        ("single", "cpu0"): ([4.0], 1.0),
    }
    assert clock.reached([3.0], {}) == {}
