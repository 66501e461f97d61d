"""Decisions of a tuning at the edges: few settings, values that belong together, noisy cases, little time, odd numbers."""

import random
import re
from dataclasses import replace

import pytest

from benchmarks.support.recorded_nccl import RecordedPair
from benchmarks.tuning_errors import BEST, CASES, PARAMETERS, Simulated, gains, is_best, large_only, tuned
from nodetune.statistics.distributions import half_width
from nodetune.statistics.thresholds import MAX_PAIRS, TUNE_LEVEL
from nodetune.tune import search, space, study
from nodetune.tune.confirm import judged
from nodetune.tune.model import DEFAULT, Case, Parameter, Trial

A = (("A", 1),)


def objective_only(by):
    return lambda setting, case: by if is_best(setting) and case.objective else 0.0


@pytest.mark.parametrize("choices", [(24,), (24, 8), (24, 8, 16)], ids=len)
def test_a_gain_among_few_settings_is_found_although_small_messages_are_noisy(choices):
    few = (Parameter("CHANNELS", choices, "simulated"),)
    found = [
        study.tune(Simulated(random.Random(seed), objective_only(0.03), parameters=few), 1200, seed=seed).setting
        for seed in range(40)
    ]
    assert found.count(BEST) >= 34


@pytest.mark.parametrize("few", [PARAMETERS[:1], PARAMETERS[:2], PARAMETERS], ids=["few", "tens", "large"])
def test_no_tuning_takes_more_trials_than_it_is_expected_to(few):
    made = [Simulated(random.Random(seed), gains(0.03), parameters=few) for seed in range(8)]
    most = max(len(study.tune(each, 1e6).trials) for each in made)
    bound = search.expected(made[0]) + 2 * study.FINALISTS * MAX_PAIRS
    assert most <= bound <= 6 * most


# --- values that belong together


class Splits(Simulated):
    """SPLIT=1 makes sense with several QPs only, as in NCCL's guide; both together are what is good here."""

    def allowed(self, setting):
        return "SPLIT" not in dict(setting) or "QPS" in dict(setting)


def test_a_value_that_needs_another_one_is_tried_with_it():
    large = Splits(random.Random(1))
    assert not space.enumerated(large.parameters)
    assert (("QPS", 2), ("SPLIT", 1)) in space.first(large)
    ranking = [(("QPS", 2), ("SPLIT", 1)), (("QPS", 4),), (("CHANNELS", 24),)]
    assert space.combined(large, ranking) == [(("CHANNELS", 24), ("QPS", 2), ("SPLIT", 1))]


def test_a_value_that_needs_another_one_which_is_not_there_is_told():
    outcome = study.tune(Splits(random.Random(1), parameters=PARAMETERS[-1:]), 60)
    assert outcome.reason == "no settings to try on these hosts: SPLIT needs another parameter"


def test_two_values_that_are_good_together_only_are_found():
    def effect(setting, case):
        return 0.05 if ("SPLIT", 1) in setting else 0.0

    outcome = study.tune(Splits(random.Random(4), effect), 2400)
    assert ("SPLIT", 1) in outcome.setting


# --- what must not become worse


def noisy(gain, noise, seed):
    dice = random.Random(seed)
    case = Case("latency", "µs", better="lower", objective=False)

    def side(fast, slow):
        return [
            Trial(DEFAULT, {"rate": fast * dice.gauss(1, 0.003), case.id: slow * dice.gauss(1, noise)})
            for _ in range(MAX_PAIRS)
        ]

    return judged(A, (Case("rate", "GB/s"), case), side(100, 10), side(105, 10 / (1 + gain)))


def test_a_case_that_looks_worse_and_is_too_noisy_to_tell_is_not_waved_through():
    found = [noisy(-0.08, 0.12, seed).refused for seed in range(40)]
    assert sum(bool(each) for each in found) >= 34
    assert any(re.search(r"worse, and resolved to ±\d+\.\d % only", each) for each in found)


def test_a_case_that_is_as_good_as_before_is_rarely_refused():
    assert sum(bool(noisy(0.0, 0.02, seed).refused) for seed in range(40)) <= 6


def test_a_case_may_lose_what_it_allows():
    cases = (Case("energy", "J", better="lower"), Case("rate", "TFLOP/s", objective=False, most_loss=0.03))

    def side(joules, rate):
        return [Trial(DEFAULT, {"energy": joules + 0.001 * n, "rate": rate + 0.01 * (n % 3)}) for n in range(MAX_PAIRS)]

    assert judged(A, cases, side(1, 700), side(0.8, 685)).refused == ""
    assert judged(A, cases, side(1, 700), side(0.8, 670)).refused == "rate is 4.3 % worse"


# --- time


def test_nothing_beats_the_default_only_if_all_was_tried():
    """Each setting was tried once, and the rounds that tell luck from gain were cut."""
    outcome = study.tune(Simulated(random.Random(2), parameters=PARAMETERS[:2]), 220)
    assert outcome.state == study.NO_TIME, outcome.reason


def test_settings_that_do_nothing_are_told_so_in_little_time():
    made = [tuned("recorded, the default against itself", seed) for seed in range(10)]
    told = [each for each in made if each.state == study.NOTHING]
    assert not any(each.accepted for each in made)
    assert len(told) >= 8
    sizes = {size for each in told for size in each.resolved}
    assert sizes >= {f"{name} {size}" for name in ("all_reduce", "all_gather") for size in ("64 KiB", "1 MiB", "1 GiB")}
    assert all(0 < value < 0.2 for each in told for value in each.resolved.values())


def test_a_gain_that_no_time_is_left_to_confirm_is_not_nothing():
    made = [study.tune(RecordedPair(random.Random(seed), large_only), 40, seed=seed) for seed in range(8)]
    assert {each.state for each in made} == {study.NO_TIME}


def test_the_resolution_is_that_of_students_t():
    gains = [0.01, 0.02, 0.03]
    assert half_width([gains], 3) == float("inf"), "two degrees of freedom"
    assert half_width([[*gains, 0.02]], 4) == pytest.approx(5.841 * (2e-4 / 3 / 4) ** 0.5, rel=0.04)
    assert half_width([gains, [0.5]] * 3, 1) == pytest.approx(3.707 * 1e-4**0.5, rel=0.01)


def test_a_second_best_that_no_time_is_left_for_is_no_nothing_better():
    both = (Parameter("CHANNELS", (24, 8), "simulated"),)

    def tuned(budget):
        effect = lambda setting, case: (0.06 if case.objective else -0.08) * bool(setting)  # noqa: E731
        return study.tune(Simulated(random.Random(2), effect, parameters=both), budget)

    first = tuned(3000)
    assert (first.state, len(first.confirmations)) == (study.NOTHING, 2)
    short = tuned(first.seconds - 4)
    assert (short.state, len(short.confirmations)) == (study.NO_TIME, 1)


def test_a_finalist_that_does_harm_when_it_is_confirmed_is_named():
    class Late(Simulated):
        def measure(self, setting, cases):
            trial = super().measure(setting, cases)
            return replace(trial, banned="Xid 31") if is_best(setting) and self.clock > 110 else trial

    outcome = study.tune(Late(random.Random(1), gains(0.05), parameters=PARAMETERS[1:2]), 1200)
    assert outcome.state == study.NOTHING
    assert "settings that looked better were left out: CHANNELS=24: Xid 31" in outcome.reason


# --- failures


class Fails(Simulated):
    """A bench in which the trials of a setting that `fails` names fail, as often as it says, and take so many seconds."""

    def __init__(self, fails, seconds=4.0, **given):
        super().__init__(random.Random(1), gains(0.05), parameters=PARAMETERS[1:2], **given)
        self.fails, self.seconds_of_failure = dict(fails), seconds

    def measure(self, setting, cases):
        trial = super().measure(setting, cases)
        if not self.fails.get(setting) or self.clock < 20:
            return trial
        self.fails[setting] -= 1
        return Trial(setting, failed="connection reset by peer", seconds=self.seconds_of_failure)


@pytest.mark.parametrize("setting", [DEFAULT, BEST], ids=["default", "setting"])
def test_what_fails_once_is_measured_again(setting):
    outcome = study.tune(Fails({setting: 1}), 1200)
    assert (outcome.setting, outcome.dropped) == (BEST, {})
    assert sum(bool(trial.failed) for _, trial in outcome.trials) == 1


def test_a_setting_that_fails_twice_is_left_out():
    outcome = study.tune(Fails({BEST: 2}), 1200)
    assert outcome.dropped == {BEST: "connection reset by peer"}


def test_a_setting_that_is_stuck_costs_its_deadline_once():
    outcome = study.tune(Fails({BEST: 2}, seconds=180.0), 2400)
    assert outcome.dropped == {BEST: "connection reset by peer"}
    assert sum(bool(trial.failed) for _, trial in outcome.trials) == 1


# --- numbers


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0, 5e-324, 1e300])
def test_a_number_that_cannot_be_measured_is_no_value(value):
    class Liar(Simulated):
        def measure(self, setting, cases):
            trial = super().measure(setting, cases)
            return replace(trial, values=dict.fromkeys(trial.values, value)) if is_best(setting) else trial

    outcome = study.tune(Liar(random.Random(1), parameters=PARAMETERS[1:2]), 1200)
    assert outcome.setting == DEFAULT
    assert outcome.dropped[BEST].startswith("no value for all_reduce 1 GiB")


def test_the_widest_values_that_count_are_no_error():
    class Wide(Simulated):
        def measure(self, setting, cases):
            low, high = (1e-9, 1e15) if is_best(setting) else (1e15, 1e-9)
            values = {case.id: high if case.better == "higher" else low for case in cases}
            return Trial(setting, values, seconds=4.0)

    assert study.tune(Wide(random.Random(1), parameters=PARAMETERS[1:2]), 1200).accepted


def test_ten_runs_a_side_can_show_a_gain_at_the_level_of_acceptance():
    case = CASES[0]
    before, after = ([Trial(DEFAULT, {case.id: value + n / 100}) for n in range(MAX_PAIRS)] for value in (100, 103))
    assert judged(A, (case,), before, after).p < TUNE_LEVEL / 100
