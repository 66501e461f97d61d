"""Confirmation: a finalist against the default on fresh runs, by the exact Mann-Whitney test."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nodetune.foundation import rank_statistics
from nodetune.tune.model import DEFAULT, Case, Setting, Trial
from nodetune.tune.trials import Trials, gain

RUNS = 10
"""Runs on each side. All are fresh: runs that selected the finalist do not count."""

LEVEL = 0.005
"""The probability that a setting without effect is accepted, for each finalist."""

LEAST_GAIN = 0.01
"""Fraction that the objective must gain. `Case.most_loss` is what a case may lose."""

SEEN = 0.05
"""A loss counts if noise causes it this rarely …"""

TOO_NOISY = -0.05
"""… or if noise could hide such a loss (the lower end of its interval): a case that looks worse does not pass."""


@dataclass(frozen=True)
class CaseResult:
    """One case with the finalist against the default. `ratio` 0.03 is three per cent better, with its 99 % interval.

    `p`: the chance of such a gain without one, adjusted for the number of cases (Holm). `before`, `after`: all runs.
    """

    case: Case
    ratio: float
    low: float
    high: float
    p: float
    before: tuple[float, ...]
    after: tuple[float, ...]
    p_worse: float

    @property
    def lost(self) -> bool:
        most = -self.case.most_loss
        return self.ratio < most and (self.p_worse < SEEN or self.low < most + TOO_NOISY)

    @property
    def loss(self) -> str:
        """Describe the loss."""
        found = f"{self.case.id} is {-100 * self.ratio:.1f} % worse"
        return found if self.p_worse < SEEN else f"{found}, with too much noise to rule it out"


@dataclass(frozen=True)
class Confirmation:
    """The result of fresh runs of a finalist. `refused` says why it is not accepted; empty if it is."""

    setting: Setting
    ratio: float
    low: float
    high: float
    p: float
    cases: tuple[CaseResult, ...]
    refused: str = ""


def confirm(trials: Trials, setting: Setting, generator: random.Random) -> Confirmation | None:
    """Run default and finalist in turn, in random order in each pair. Return None if dropped. Raise BudgetError."""
    sides: dict[Setting, list[Trial]] = {DEFAULT: [], setting: []}
    for _ in range(RUNS):
        pair = list(sides)
        generator.shuffle(pair)
        trials.begin(pair)
        for each in pair:
            trial = trials.run("confirmation", each)
            if trial is None:
                return None
            sides[each].append(trial)
    return judged(setting, trials.cases, sides[DEFAULT], sides[setting])


def judged(setting: Setting, cases: Sequence[Case], before: Sequence[Trial], after: Sequence[Trial]) -> Confirmation:
    """Judge a finalist by its runs and those of the default."""
    results = _adjusted([_case(case, before, after) for case in cases])
    scores = [_scores(cases, before[0].values, side) for side in (before, after)]
    ratio, low, high = _shift(scores[0], scores[1])
    p = rank_statistics.p_larger(scores[0], scores[1])
    return Confirmation(setting, ratio, low, high, p, results, _refusal(ratio, p, results))


def _refusal(ratio: float, p: float, results: Sequence[CaseResult]) -> str:
    lost = [each for each in results if each.lost]
    if lost:
        return "; ".join(each.loss for each in lost)
    if p > LEVEL:
        return f"the gain of {100 * ratio:.1f} % is not more than noise (p = {p:.3f})"
    return f"its gain of {100 * ratio:.1f} % is below {100 * LEAST_GAIN:.0f} %" if ratio < LEAST_GAIN else ""


def _scores(cases: Sequence[Case], origin: Mapping[str, float], side: Sequence[Trial]) -> list[float]:
    """Return the mean over the objective's cases for each run: logarithms relative to one run of the default."""
    wanted = [case for case in cases if case.objective]
    return [statistics.fmean(gain(case, origin[case.id], trial.values[case.id]) for case in wanted) for trial in side]


def _case(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> CaseResult:
    early, late = (tuple(trial.values[case.id] for trial in side) for side in (before, after))
    logs = [[gain(case, early[0], value) for value in side] for side in (early, late)]
    p, p_worse = rank_statistics.p_larger(*logs), rank_statistics.p_larger(logs[1], logs[0])
    return CaseResult(case, *_shift(*logs), p, early, late, p_worse)


def _shift(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Return the shift of logarithms with its interval, as fractions: twice as good is 1.0."""
    found = rank_statistics.shift(before, after, 2 * LEVEL)
    assert found is not None  # noqa: S101  (RUNS a side are enough for this level)
    ratio, low, high = map(math.expm1, found)
    return ratio, low, high


def _adjusted(results: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    adjusted = rank_statistics.holm([each.p for each in results])
    return tuple(replace(each, p=p) for each, p in zip(results, adjusted, strict=True))
