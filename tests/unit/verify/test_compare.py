"""Real change told from noise: an exact test, no more alarms than its level allows, and what it says that it sees it sees."""

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune.statistics import rank_tests
from nodetune.verify import compare
from nodetune.verify.compare import BETTER, LEVEL, MIN_RUNS, SAME, UNSURE, WORSE
from nodetune.verify.model import Figure
from tests.support import verify_records as records

DISTURBED = json.loads(
    (Path(__file__).parents[2] / "data" / "recordings" / "verify" / "memory-repeats.json").read_text()
)["runs"]
"""One machine, whose memory other work used as well: metric → the median of each run, in order, in GB/s."""


def figure(values, measurement="memory", better="higher"):
    return Figure("node", measurement, "local", "node0", tuple((value,) for value in values), "GB/s", better)


def changed(before, after, measurement="memory", better="higher"):
    (found,) = compare.compare([figure(before, measurement, better)], [figure(after, measurement, better)])
    return found


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 4), (5, 5), (6, 4)])
def test_the_orders_are_counted_as_they_are(first, second):
    counts = [0] * (first * second + 1)
    for ours in itertools.combinations(range(first + second), first):
        others = [place for place in range(first + second) if place not in ours]
        counts[sum(one > other for one in ours for other in others)] += 1
    assert rank_tests._orders(first, second) == tuple(counts)


def test_the_interval_is_the_one_of_the_exact_test():
    """Every shift inside is one that the two-sided test does not refuse, every shift outside one that it does."""
    before, after = [1.0, 2.1, 3.3, 4.2, 5.9, 6.4], [2.05, 3.41, 4.44, 5.77, 7.2, 8.31]
    _, low, high = rank_tests.shift(before, after, compare.LEVEL)
    counts = rank_tests._orders(6, 6)

    def refused(shift):
        u = sum(late - shift > early for early in before for late in after)
        return 2 * sum(counts[: min(u, 36 - u) + 1]) / sum(counts) <= LEVEL

    assert not refused(low + 1e-9)
    assert not refused(high - 1e-9)
    assert refused(low - 1e-9)
    assert refused(high + 1e-9)


def test_with_fewer_runs_the_test_could_never_say_anything():
    assert rank_tests.shift([1.0] * (MIN_RUNS - 1), [2.0] * (MIN_RUNS - 1), compare.LEVEL) is None
    assert rank_tests.shift([1.0] * MIN_RUNS, [2.0] * MIN_RUNS, compare.LEVEL) is not None
    assert changed([100.0] * 4, [50.0] * 9).status == UNSURE


def test_a_change_is_called_by_what_is_better():
    slow, fast = [100.0, 101, 102, 103, 104], [220.0, 221, 222, 223, 224]
    assert changed(slow, fast).status == BETTER
    assert changed(fast, slow).status == WORSE
    assert changed(slow, fast, "gpu_latency", "lower").status == WORSE
    assert changed(slow, slow).status == SAME


def test_a_change_within_what_nodes_drift_is_none_however_sure():
    before = [400.0 + run / 100 for run in range(8)]
    found = changed(before, [value * 0.98 for value in before])
    assert found.status == SAME
    assert found.interval[1] < 0, "the test by itself is sure"


def test_only_the_same_figures_are_compared():
    one = figure([100.0] * 5)
    assert compare.compare([one], [replace(one, host="other")]) == []
    assert compare.compare([one], [replace(one, about={"threads": 4})]) == []
    assert len(compare.compare([one], [replace(one, about={"seen": 4})])) == 1


def test_no_more_alarms_without_a_change_than_the_level_allows():
    """Drift is not forgiven here: the bare test, 2000 times, on skewed noise."""
    source, alarms = random.Random(1), 0
    for _ in range(2000):
        runs = [source.lognormvariate(0, 0.05) for _ in range(12)]
        _, low, high = rank_tests.shift(runs[:6], runs[6:], compare.LEVEL)
        alarms += low > 0 or high < 0
    assert alarms <= 2000 * LEVEL * 1.5


def alternating(values):
    """Ten runs one after another, every other one of them on either side: what disturbs both sides is no change."""
    windows = (values[start : start + 2 * MIN_RUNS] for start in range(len(values) - 2 * MIN_RUNS + 1))
    return [(window[::2], window[1::2]) for window in windows]


def on_one_machine():
    return [(figure(before), figure(after)) for values in DISTURBED.values() for before, after in alternating(values)]


def on_one_node():
    """The repeats of a GPU node's figures, the first five before and the next five after nothing at all."""
    every = [each for run in range(1, 7) for each in records.recorded(run) if len(each.samples) >= 2 * MIN_RUNS]
    return [(singles(each, 0), singles(each, MIN_RUNS)) for each in every]


def singles(found, start):
    return replace(found, runs=tuple((sample,) for sample in found.samples[start : start + MIN_RUNS]))


def real():
    changes = [compare._change(before, after) for before, after in (*on_one_machine(), *on_one_node())]
    return list(zip((*on_one_machine(), *on_one_node()), changes, strict=True))


def test_there_are_enough_real_comparisons():
    assert len(on_one_machine()) >= 100
    assert len(on_one_node()) >= 50


@pytest.mark.parametrize("where", [on_one_machine, on_one_node])
def test_false_alarms_on_repeats_stay_within_the_level(where):
    pairs = where()
    alarms = [pair for pair in pairs if compare._change(*pair).status in (WORSE, BETTER)]
    assert len(alarms) <= max(1, round(LEVEL * len(pairs)))


def test_a_drop_of_what_could_have_been_seen_is_seen():
    """Into each real comparison that showed nothing, the smallest change that it claims to see is planted."""
    quiet = [(pair, found) for pair, found in real() if found.status == SAME]
    assert len(quiet) >= 150
    for (before, after), found in quiet:
        factor = 1 - after.sign * found.smallest * (1 + 1e-9)
        worse = replace(after, runs=tuple((value * factor,) for value in after.by_run))
        assert compare._change(before, worse).status == WORSE


def test_the_detectable_change_is_small_for_steady_figures():
    steady = [found.smallest for (before, _), found in real() if before.measurement == "gpu_memory"]
    assert max(steady) < 0.03


TEN_RUNS = json.loads(
    (Path(__file__).parents[2] / "data" / "recordings" / "verify" / "h200-x2-ten-runs.json").read_text()
)["figures"]


def halves():
    """Every way to take five of ten runs of one node: 126 of them for each of its figures, and nothing had changed."""
    for each in TEN_RUNS:
        one = Figure("node", each["measurement"], each["metric"], each["subject"], (), each["unit"], each["better"])
        for chosen in itertools.combinations(range(1, 10), 4):
            sides = [(0, *chosen), [run for run in range(1, 10) if run not in chosen]]
            yield [replace(one, runs=tuple((each["runs"][run],) for run in side)) for side in sides]


def test_ten_runs_raise_no_more_alarms_than_the_level_allows():
    found = [compare._change(*pair) for pair in halves()]
    assert len(found) > 3000
    assert sum(each.status != SAME for each in found) <= LEVEL * len(found)
