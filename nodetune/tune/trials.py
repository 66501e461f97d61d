"""Runs trials: from the journal where it has them, on the hosts otherwise; keeps the time, and what may not be tried again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from nodetune.tune.model import DEFAULT, Bench, BenchError, Case, Setting, Trial

MOST_DISTURBED = 3
"""Times that a trial is repeated because others used the hosts."""

LEAST, MOST = 1e-9, 1e15
"""Values that can be measured, in any unit. What a host says beyond is no measurement."""

MOST_FAILED = 1
"""Times that a trial is repeated because it failed: a connection that breaks once says nothing of a setting."""

STUCK = 3
"""A failure that took so many times as long as a usual trial is the setting's: it is not repeated."""

Keep = Callable[[int, Trial], None]
"""Writes a trial down before the next one begins, after so many others. What was kept beyond them counts no more."""

Tell = Callable[[str, Trial], None]
"""Hears the phase and each trial."""


class DisturbedError(Exception):
    """Others used the hosts each time."""


class BudgetError(Exception):
    """The time is over."""


class Trials:
    """All trials of one tuning, in order. `known` are those of an interrupted one, measured in this order before."""

    def __init__(
        self,
        bench: Bench,
        budget: float,
        known: Sequence[Trial] = (),
        keep: Keep | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.bench, self.cases = bench, tuple(bench.cases)
        self.made: list[tuple[str, Trial]] = []
        self.dropped: dict[Setting, str] = {}
        self.unmeasured: set[Setting] = set()
        self._left, self._keep, self._tell = list(known), keep, tell
        self._budget, self.spent = budget, 0.0

    @property
    def objective(self) -> list[Case]:
        return [case for case in self.cases if case.objective]

    @property
    def seconds(self) -> float:
        """How long a trial takes, as the longest quarter did; 0 before the first."""
        took = sorted(trial.seconds for _, trial in self.made)
        return took[(3 * len(took)) // 4] if took else 0.0

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget - self.spent

    def begin(self, block: Sequence[Setting]) -> None:
        """Begin a block. If an earlier run was interrupted within it, all of it is measured again: its parts belong to one time."""
        at = 0
        for setting in block:
            first = at
            while at < len(self._left) and self._left[at].setting == setting:
                at += 1
                if self._left[at - 1].counts or self._left[at - 1].banned:
                    break
            if at == first:
                self._left.clear()
                return

    def run(self, phase: str, setting: Setting) -> Trial | None:
        """Measure a setting once; None for one that is dropped now. Raise DisturbedError, BudgetError or BenchError."""
        disturbed = failed = 0
        while True:
            if self.left < self.seconds:
                raise BudgetError
            usual, trial = self.seconds, self._one(phase, setting)
            if trial.counts:
                return trial
            disturbed, failed = disturbed + bool(trial.disturbed), failed + bool(trial.failed)
            if disturbed > MOST_DISTURBED:
                raise DisturbedError(trial.disturbed)
            stuck = trial.seconds > STUCK * usual > 0
            if trial.banned or failed > MOST_FAILED or (trial.failed and stuck and setting != DEFAULT):
                self._drop(setting, trial)
                return None

    def _one(self, phase: str, setting: Setting) -> Trial:
        if self._left and self._left[0].setting == setting:
            trial = _sound(self._left.pop(0), self.cases)
        else:
            self._left.clear()  # it went another way then: what follows there does not belong here
            trial = _sound(self.bench.measure(setting, self.cases), self.cases)
            if self._keep:
                self._keep(len(self.made), trial)
        self.spent += trial.seconds
        self.made.append((phase, trial))
        if self._tell:
            self._tell(phase, trial)
        return trial

    def _drop(self, setting: Setting, trial: Trial) -> None:
        why = trial.banned or trial.failed
        if setting == DEFAULT:
            raise BenchError(f"the default could not be measured: {why}")
        self.dropped[setting] = why
        if not trial.banned:
            self.unmeasured.add(setting)

    def gains(self, trial: Trial, control: Trial) -> dict[str, float]:
        """Return case → how much better a trial is than the default of its block."""
        return {case.id: gain(case, control.values[case.id], trial.values[case.id]) for case in self.cases}


def gain(case: Case, before: float, after: float) -> float:
    """Return the logarithm of how much better a value is: positive is better, 0.01 is one per cent."""
    return (math.log(after) - math.log(before)) * (1 if case.better == "higher" else -1)


def _sound(trial: Trial, cases: Sequence[Case]) -> Trial:
    """Return the trial, failed if a value is missing or cannot be."""
    bad = [case.id for case in cases if not LEAST <= trial.values.get(case.id, 0.0) <= MOST]
    return replace(trial, failed=f"no value for {', '.join(bad)}") if trial.counts and bad else trial
