"""Runs trials: from the journal if it has them, otherwise on the hosts. Keeps the budget and the dropped settings."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from nodetune.tune.model import DEFAULT, Bench, BenchError, Case, Setting, Trial

MAX_DISTURBED = 3
"""Number of times that a disturbed trial is repeated."""

MIN_FIGURE, MAX_FIGURE = 1e-9, 1e15
"""The range of plausible values, in any unit. Other values from a host are not measurements."""

MAX_FAILED = 1
"""Number of times that a failed trial is repeated: a single broken connection says nothing about a setting."""

STUCK = 3
"""A failure that took this many times as long as a normal trial is due to the setting and is not repeated."""

Keep = Callable[[int, Trial], None]
"""Records a trial, after the given number of others, before the next one begins. Later records no longer count."""

OnTrial = Callable[[str, Trial], None]
"""Receives the phase and each trial."""


class DisturbedError(Exception):
    """Every repeat of a trial was disturbed."""


class BudgetError(Exception):
    """The budget is used up."""


class Trials:
    """All trials of one tuning, in order. `known` are those of an interrupted tuning in the same order."""

    def __init__(
        self,
        bench: Bench,
        budget: float,
        known: Sequence[Trial] = (),
        keep: Keep | None = None,
        report: OnTrial | None = None,
    ) -> None:
        self.bench, self.cases = bench, tuple(bench.cases)
        self.made: list[tuple[str, Trial]] = []
        self.dropped: dict[Setting, str] = {}
        self.unmeasured: set[Setting] = set()
        self._replay, self._keep, self._report = list(known), keep, report
        self._budget, self.spent = budget, 0.0

    @property
    def judged(self) -> list[Case]:
        """The cases that decide: all others are only shown."""
        return [case for case in self.cases if case.judged or case.objective]

    @property
    def seconds(self) -> float:
        """Seconds for a trial, by the longest quarter; 0 before the first."""
        took = sorted(trial.seconds for _, trial in self.made)
        return took[(3 * len(took)) // 4] if took else 0.0

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget - self.spent

    def begin(self, block: Sequence[Setting], *, applied: bool = False) -> None:
        """Begin a block. If an earlier run was interrupted in it, measure it all again: its parts belong together."""
        self.bench.begin(block, applied=applied)
        at = 0
        for setting in block:
            first = at
            while at < len(self._replay) and self._replay[at].setting == setting:
                at += 1
                if self._replay[at - 1].counts or self._replay[at - 1].banned:
                    break
            if at == first:
                self._replay.clear()
                return

    def run(self, phase: str, setting: Setting, cases: Sequence[Case] = ()) -> Trial | None:
        """Measure a setting once (`cases`: only these); return None if it is dropped.

        Raise DisturbedError, BudgetError or BenchError.
        """
        disturbed = failed = 0
        while True:
            if self.left < self.seconds:
                raise BudgetError
            usual, trial = self.seconds, self._one(phase, setting, cases or self.cases)
            if trial.counts:
                return trial
            disturbed, failed = disturbed + bool(trial.disturbed), failed + bool(trial.failed)
            if disturbed > MAX_DISTURBED:
                raise DisturbedError(trial.disturbed)
            stuck = trial.seconds > STUCK * usual > 0
            if trial.banned or failed > MAX_FAILED or (trial.failed and stuck and setting != DEFAULT):
                self._drop(setting, trial)
                return None

    def _one(self, phase: str, setting: Setting, cases: Sequence[Case]) -> Trial:
        if self._replay and self._replay[0].setting == setting:
            trial = _sound(self._replay.pop(0), cases)
        else:
            self._replay.clear()  # it went another way then: what follows there does not belong here
            trial = _sound(self.bench.measure(setting, cases), cases)
            if self._keep:
                self._keep(len(self.made), trial)
        self.spent += trial.seconds
        self.made.append((phase, trial))
        if self._report:
            self._report(phase, trial)
        return trial

    def _drop(self, setting: Setting, trial: Trial) -> None:
        why = trial.banned or trial.failed
        if setting == DEFAULT:
            raise BenchError(f"the default could not be measured: {why}")
        self.dropped[setting] = why
        if not trial.banned:
            self.unmeasured.add(setting)

    def gains(self, trial: Trial, control: Trial) -> dict[str, float]:
        """Return case → gain of a trial over the default of its block, for the cases that were measured."""
        measured = [case for case in self.cases if case.id in trial.values]
        return {case.id: gain(case, control.values[case.id], trial.values[case.id]) for case in measured}


def gain(case: Case, before: float, after: float) -> float:
    """Return the logarithm of the gain: positive is better, 0.01 is one per cent."""
    return (math.log(after) - math.log(before)) * (1 if case.better == "higher" else -1)


def _sound(trial: Trial, cases: Sequence[Case]) -> Trial:
    """Return the trial, as failed if a value is missing or implausible."""
    missing = [case.id for case in cases if not MIN_FIGURE <= trial.values.get(case.id, 0.0) <= MAX_FIGURE]
    return replace(trial, failed=f"no value for {', '.join(missing)}") if trial.counts and missing else trial
