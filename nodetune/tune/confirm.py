"""Confirmation: a finalist against the default on fresh runs, by exact rank tests at one or two looks."""

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from nodetune.statistics import paired, rank_tests, thresholds
from nodetune.tune.model import DEFAULT, Case, Setting, Trial, objective
from nodetune.tune.trials import BudgetError, Trials, gain

ALONE, TOGETHER, SINGLY = "alone", "with computation", "called one by one"
USES = {
    ALONE: "work without computation at the same time",
    TOGETHER: "training",
    SINGLY: "many small messages without CUDA graphs",
}
"""Tables of cases, and where a setting that is worse there is of no use."""

LEAVES_OUT = "--sizes without that size accepts it, for jobs that use CUDA graphs or send large messages"
"""The remedy for losses of calls one by one …"""

BY_SIZE = "--plugin DIR chooses by size"
"""… and of sizes alone."""


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
    def worse(self) -> bool:
        """Whether it became worse, and not by noise."""
        return self.ratio < -self.case.most_loss and (
            self.high < 0 if self.case.coarse else self.p_worse < thresholds.LOSS_LEVEL
        )

    @property
    def lost(self) -> bool:
        most = -self.case.most_loss
        hidden = not self.case.coarse and self.ratio < most and self.low < most + thresholds.TOO_NOISY
        return self.case.judged and (self.worse or hidden)

    @property
    def resolution(self) -> float:
        """Half of the interval: a smaller difference is not seen."""
        return (self.high - self.low) / 2

    @property
    def unresolved(self) -> bool:
        return (
            self.case.judged
            and not self.lost
            and self.resolution > thresholds.RESOLVED
            and self.low < -self.case.most_loss
        )

    @property
    def settled(self) -> bool:
        """Whether more runs would not find a loss."""
        most = -self.case.most_loss
        return self.low > most - thresholds.RESOLVED / 2 or (self.case.coarse and (self.ratio > most or self.worse))

    @property
    def loss(self) -> str:
        """Describe the loss."""
        found = f"{self.case.id} is {-100 * self.ratio:.1f} % worse"
        return found if self.worse else f"{found}, and resolved to ±{100 * self.resolution:.1f} % only"


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

    @property
    def clear(self) -> bool:
        """Return whether more runs would not change the decision: no gain, a certain loss, or a gain without any loss."""
        if self.refused:
            return self.high < thresholds.MIN_GAIN or any(
                each.lost and each.p_worse < thresholds.LOOKS[0][1] for each in self.cases
            )
        return all(each.settled for each in self.cases if each.case.judged)

    @property
    def undecided(self) -> tuple[Case, ...]:
        """The cases that alone refuse a gain, if all of them may do so by chance."""
        lost = [each for each in self.cases if each.lost]
        gained = self.ratio >= thresholds.MIN_GAIN and self.p <= thresholds.LOOKS[-1][1]
        return tuple(
            each.case for each in lost if gained and not any(case.p_worse < thresholds.LOOKS[0][1] for case in lost)
        )

    @property
    def unresolved(self) -> str:
        """Name the cases whose noise may hide a loss; empty if there are none."""
        several = [f"{each.case.id} ±{100 * each.resolution:.1f} %" for each in self.cases if each.unresolved]
        return f"not resolved to {100 * thresholds.RESOLVED:.0f} %: {', '.join(several)}" if several else ""

    @property
    def in_tables(self) -> str:
        """Say what the setting does in each table of cases."""
        worse = [each.case for each in self.cases if each.worse]
        return in_tables({each.case: math.log1p(each.ratio) for each in self.cases}, worse)


def confirm(trials: Trials, setting: Setting, generator: random.Random) -> Confirmation | None:
    """Run default and finalist in turn, in random order in each pair. Return None if dropped. Raise BudgetError.

    All runs are fresh: those that selected the finalist do not count. Cases that are only shown have the runs of the first look.
    """
    cases: Sequence[Case] = ()

    def measure(order: Sequence[int]) -> list[Trial] | None:
        pair = [(DEFAULT, setting)[side] for side in order]
        trials.begin(pair, applied=True)
        made: list[Trial] = []
        for each in pair:
            trial = trials.run("confirmation", each, cases)
            if trial is None:
                return None
            made.append(trial)
        return made

    def judge(level: float) -> Confirmation:
        nonlocal cases
        cases = trials.judged
        return judged(setting, trials.cases, pairs.before, pairs.after, level)

    pairs = paired.Pairs(measure, paired.shuffled(generator))
    found = pairs.judged(thresholds.LOOKS, judge, lambda found: found.clear)
    if found is None or found.clear:
        return found
    cases = found.undecided
    more = min(thresholds.MORE_PAIRS, int(trials.left / (2 * trials.seconds))) if cases else 0
    if more < thresholds.MIN_MORE_PAIRS:
        return found
    with suppress(BudgetError):
        if not pairs.reach(thresholds.MAX_PAIRS + more):
            return None
    return judge(thresholds.TUNE_LEVEL)


def judged(
    setting: Setting,
    cases: Sequence[Case],
    before: Sequence[Trial],
    after: Sequence[Trial],
    level: float = thresholds.TUNE_LEVEL,
) -> Confirmation:
    """Judge a finalist by its runs and those of the default."""
    results = _adjusted([_case(case, before, after) for case in cases])
    early, late = (_scores(cases, before[0].values, side) for side in (before, after))
    found, p = paired.shift(early, late, 2 * thresholds.TUNE_LEVEL), paired.p_of_both(early, late)
    return Confirmation(
        setting, found.ratio, found.low, found.high, p, results, _refusal(found.ratio, p, results, level)
    )


def in_tables(gains: Mapping[Case, float], worse: Sequence[Case]) -> str:
    """Return `alone +8.2 %, with computation -9.8 % (all_reduce 256 MiB and GEMM): not for training`; empty for one table.

    A table has the mean of its cases, or its worst one if some are certainly `worse`. `gains`: logarithms.
    """
    tables: dict[str, list[Case]] = {}
    for case in gains:
        if case.where and (case.objective or case.coarse or not case.judged):
            tables.setdefault(case.where, []).append(case)
    if len(tables) < 2:
        return ""
    words, uses = [], []
    for name in filter(tables.get, USES):
        cases = tables[name]
        lost = min((case for case in cases if case in worse), key=lambda case: gains[case], default=None)
        gain = gains[lost] if lost else statistics.fmean(gains[case] for case in cases)
        words.append(
            f"{name} {100 * math.expm1(gain):+.1f} %{f' ({lost.id.removesuffix(name).strip()})' if lost else ''}"
        )
        uses += [USES[name]] if lost else []
    return ", ".join(words) + (f": not for {' or '.join(uses)}" if uses else "")


def settled_by(lost: Sequence[Case]) -> str:
    """Return `: what accepts it` for a setting that makes these cases worse; empty if nothing does."""
    if all(case.coarse for case in lost):
        return f": {LEAVES_OUT}"
    return f": {BY_SIZE}" if all(case.where in (ALONE, SINGLY) for case in lost) else ""


def _refusal(ratio: float, p: float, results: Sequence[CaseResult], level: float) -> str:
    lost = [each for each in results if each.lost]
    if lost:
        return "; ".join(each.loss for each in lost)
    if p > level:
        return f"the gain of {100 * ratio:.1f} % is not more than noise (p = {p:.3f})"
    return (
        f"its gain of {100 * ratio:.1f} % is below {100 * thresholds.MIN_GAIN:.0f} %"
        if ratio < thresholds.MIN_GAIN
        else ""
    )


def _scores(cases: Sequence[Case], origin: Mapping[str, float], side: Sequence[Trial]) -> list[float]:
    """Return the objective of each run: logarithms relative to one run of the default."""
    wanted = [case for case in cases if case.objective]
    whole = [trial.values for trial in side if all(case.id in trial.values for case in wanted)]
    return [
        objective(wanted, {case.id: gain(case, origin[case.id], values[case.id]) for case in wanted})
        for values in whole
    ]


def _case(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> CaseResult:
    early, late = (
        tuple(trial.values[case.id] for trial in side if case.id in trial.values) for side in (before, after)
    )
    logs = [[gain(case, early[0], value) for value in side] for side in (early, late)]
    found = paired.shift(logs[0], logs[1], 2 * thresholds.TUNE_LEVEL)
    return CaseResult(case, found.ratio, found.low, found.high, found.p, early, late, found.p_smaller)


def _adjusted(results: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    adjusted = rank_tests.holm([each.p for each in results])
    return tuple(replace(each, p=p) for each, p in zip(results, adjusted, strict=True))
