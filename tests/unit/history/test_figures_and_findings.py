"""Figures of verify, and since when findings are there."""

from dataclasses import replace

from nodetune.api.model import Finding, HostResult
from nodetune.audit import conclude
from nodetune.history import timeline
from nodetune.history.snapshot import of_figures

START = 20_700 * 86_400  # of conftest.py


def concluded(results, at):
    return conclude.concluded([replace(each, at=at) for each in results])


def judged(*findings, host="n1"):
    return [HostResult(host, "ok", findings=findings)]


def found(status, check="swap-on", **subjects):
    return Finding(check, status, "medium", subjects=subjects)


def test_figures_are_a_series_and_leave_facts_as_they_are(history, look):
    history.record([look(0, {"gpu.pcie_replay_counter": {"GPU0": 7}, "gpu.temperature": {"GPU0": 40}})])
    history.record([of_figures("n1", START + 60, {"verify.gemm.bf16/GPU0": 807.25})])
    history.record([look(900, {"gpu.pcie_replay_counter": {"GPU0": 8}, "gpu.temperature": {"GPU0": 41}})])
    assert [each.low for each in history.series("n1", "verify.gemm.bf16/GPU0")] == [807250, 807250]
    assert [each.low for each in history.series("n1", "gpu.pcie_replay_counter/GPU0")] == [7, 7, 8]
    assert [each.low for each in history.series("n1", "gpu.temperature/GPU0")] == [40, 40, 41]
    assert history.changes("n1") == []


def test_a_figure_of_zero_is_kept_and_shown_as_zero(history):
    for hour, used in enumerate((95.5, 0)):
        history.record([of_figures("n1", START + 3600 * hour, {"watch.util/GPU0": used})])
    points = history.series("n1", "watch.util/GPU0")
    assert [timeline.number("watch.util/GPU0", each.high) for each in points] == ["95.5", "0"]


def test_a_finding_is_there_until_its_check_passes(history, look):
    for number, status in enumerate(("fail", "unknown", "fail", "pass", "fail")):
        history.record([look(number * 900, {"sysctl.vm.swappiness": 60})])
        history.conclude(concluded(judged(found(status)), at=START + number * 900))
        since = {0: START, 1: START, 2: START, 3: None, 4: START + 3600}[number]
        assert history.since(["n1"]).get("n1", {}).get("swap-on") == since
    (drain,) = history.drains("n1")
    assert (drain.finding, drain.times, drain.between, drain.last.gone) == ("swap-on", 2, 3600, None)


def test_each_device_has_its_own_time(history, look):
    history.record([look(0, {"sysctl.vm.swappiness": 60})])
    history.conclude(concluded(judged(found("fail", GPU0="5", GPU1="7")), at=START))
    history.record([look(900, {"sysctl.vm.swappiness": 60})])
    history.conclude(concluded(judged(found("fail", GPU1="9", GPU2="7")), at=START + 900))
    assert history.since(["n1"]) == {"n1": {"swap-on": START}}
    rows = history._db.rows("SELECT place, since, gone FROM conclusion ORDER BY place")
    assert rows == [("GPU0", START, START + 900), ("GPU1", START, None), ("GPU2", START + 900, None)]


def test_a_finding_of_older_facts_or_of_a_lost_host_says_nothing(history, look):
    history.record([look(900, {"sysctl.vm.swappiness": 60})])
    history.conclude(concluded(judged(found("fail")), at=START + 900))
    history.conclude(concluded(judged(found("pass")), at=START))
    history.conclude(concluded([replace(judged(found("pass"))[0], state="unreachable")], at=START + 1800))
    history.conclude(concluded(judged(found("fail"), host="n2"), at=0))
    assert history.since(["n1", "n2"]) == {"n1": {"swap-on": START + 900}}


def test_a_finding_that_moves_from_device_to_device_came_once(history, look):
    seen = [("GPU0",), ("GPU0", "GPU5"), ("GPU0",), (), ("GPU1",)]
    for number, failing in enumerate(seen):
        history.record([look(number * 900, {})])
        result = found("fail" if failing else "pass", "nvlink-down", **dict.fromkeys(failing, "x"))
        history.conclude(concluded(judged(result), at=START + number * 900))
    (drain,) = history.drains("n1")
    assert (drain.times, drain.last.since, drain.last.gone) == (2, START + 3600, None)
    assert [each.times for each in history.drains("n1", START + 2701)] == [1], "the first time was before"


def test_a_finding_of_long_ago_is_left_out(history, look):
    for number, status in enumerate(("fail", "pass", "pass")):
        history.record([look(number * 900, {})])
        history.conclude(concluded(judged(found(status)), at=START + number * 900))
    assert len(history.drains("n1", START + 900)) == 1
    assert history.drains("n1", START + 901) == []


def test_a_device_that_cannot_be_read_keeps_its_finding(history, look):
    steps = [{"GPU0": "x"}, {"GPU5": "x"}, {"GPU0": "x", "GPU5": "x"}]
    for number, (failing, unread) in enumerate(zip(steps, [(), ("GPU0",), ()], strict=True)):
        history.record([look(number * 900, {})])
        result = replace(found("fail", "nvlink-down", **failing), unread=unread)
        history.conclude(concluded(judged(result), at=START + number * 900))
    assert history.since(["n1"]) == {"n1": {"nvlink-down": START}}
    assert history.drains("n1")[0].times == 1
