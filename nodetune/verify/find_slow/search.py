"""A search in progress: it plans a round, takes its results, and concludes. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log, log2
from statistics import median

from nodetune.statistics.distributions import binomial_tail
from nodetune.statistics.likelihood import BAD, level, middle, unsure
from nodetune.statistics.thresholds import FLEET_DRIFT, LOW_DEVIATIONS, SMALLEST_LOSS, USUAL_NOISE, WITNESS_CHANCE
from nodetune.verify.find_slow import culprits
from nodetune.verify.find_slow.classify import classify
from nodetune.verify.find_slow.model import (
    JOINT,
    PATH,
    SOLO,
    Classification,
    Fleet,
    GroupResult,
    GroupRun,
    Part,
    Round,
    SearchResult,
)
from nodetune.verify.find_slow.schedule import Schedule

MIN_ROUNDS = 10
"""The bound of rounds of small fleets: fewer pairs run at once there."""


def max_rounds(count: int) -> int:
    """Return the bound of rounds for a number of nodes."""
    return max(MIN_ROUNDS, int(log2(count)) + 4) + (count % 2 and count > 2)


class Search:
    """Plan the `next_round`, have it run, `add` its results, until there is none: then the `result`.

    `more`: rounds beyond the bound, for what it leaves undecided.
    """

    def __init__(self, fleet: Fleet, more: int = 0) -> None:
        self._fleet = fleet
        self._schedule = Schedule(fleet, max_rounds(len(fleet.nodes)) + more)
        self._rounds: list[Round] = []
        self._solo: list[GroupRun] = []
        self._runs: list[GroupRun] = []
        self._discarded: list[GroupRun] = []
        self._joint = GroupResult()
        self._classification = Classification([], set(), set())
        self._hidden_drift = 0.0  # the largest drift that a repeat may hide

    def next_round(self) -> Round | None:
        """Return the next round to run, after the results of the one before were added. None: that was the last."""
        done = len(self._rounds)
        if done and self._rounds[-1].kind == JOINT:
            return None
        if first := self._schedule.first(done):
            return first
        self._classification = classify(self._fleet, self._solo, self._runs, self._hidden_drift)
        met = Counter(run.nodes for run in (*self._runs, *self._discarded))
        return self._schedule.repeat(done, self._classification, met) or self._schedule.last(self._classification)

    def add(self, planned: Round, results: Sequence[GroupResult]) -> None:
        """Take the results of a round, in the order of its groups."""
        domains, number = self._fleet.domains, len(self._rounds)
        self._rounds.append(planned)
        runs = [
            GroupRun(
                group,
                _logarithms(result),
                result.fault,
                number,
                ring=planned.ring,
                near=len({domains[node] for node in group}) == 1,
                loaded=planned.loaded,
            )
            for group, result in zip(planned.groups, results, strict=True)
            if result.figures or result.fault
        ]
        if planned.kind == JOINT:
            (self._joint,) = results
        elif planned.kind == SOLO:
            self._solo = runs
        else:
            self._runs += self._remove_drift(runs)

    def _remove_drift(self, runs: list[GroupRun]) -> list[GroupRun]:
        """Remove a drift of the whole fleet from a round: what its near pairs moved against the ring.

        Where that may be a drift, or witnesses that fell by chance, the round says only what is broken.
        """
        drift, sure = (self._ring_drift(runs), True) if runs and runs[0].ring else self._drift(runs)
        if not drift:
            return runs
        if not sure:
            self._discarded += [run for run in runs if min(run.rails) > BAD]
            return [run for run in runs if min(run.rails) <= BAD]
        return [replace(run, rails=tuple(rail - drift if rail > BAD else rail for rail in run.rails)) for run in runs]

    def _ring_drift(self, runs: Sequence[GroupRun]) -> float:
        """Compare the pairs of a later round of the ring with the others of its first."""
        before = [middle(run.rails) for run in self._runs if run.ring and run.near and run.round == 1]
        now = [middle(run.rails) for run in runs if run.near]
        drift = level(now) - level(before) if min(len(now), len(before)) >= 4 else 0.0
        return drift if abs(drift) > self._bound(len(now)) else 0.0

    def _drift(self, runs: Sequence[GroupRun]) -> tuple[float, bool]:
        """Compare repeated good pairs with their figures of the ring. Return the move, and whether it is surely no chance."""
        first = {run.nodes: middle(run.rails) for run in self._runs if run.ring and run.near}
        pairs = [(middle(run.rails), first[run.nodes]) for run in runs if run.nodes in first and self._is_witness(run)]
        changes = [now - then for now, then in pairs if min(now, then) > BAD]
        drift = median(changes) if changes else 0.0
        bound = self._bound(len(changes))
        if not any(run.loaded for run in runs):
            self._hidden_drift = max(self._hidden_drift, bound)
        if abs(drift) <= bound:
            return 0.0, True
        agreeing = sum(change * drift > 0 and abs(change) > bound for change in changes)
        return drift, self._chance(agreeing, len(changes)) < WITNESS_CHANCE

    def _chance(self, at_least: int, of: int) -> float:
        """Return the chance that at least this number of witnesses fell one by one."""
        count, all_runs, _ = self._classification.falls
        chance = (1 + count) / (4 + all_runs)
        return binomial_tail(at_least, of, chance)

    def _bound(self, count: int) -> float:
        return max(FLEET_DRIFT, unsure(self._classification.noise or USUAL_NOISE, count))

    def _is_witness(self, run: GroupRun) -> bool:
        """Return whether a repeated pair is good. A path in doubt was chosen for a low figure, and the next is mostly higher."""
        return set(run.nodes) <= self._classification.clear and Part(PATH, run.nodes) not in self._classification.doubts

    def result(self) -> SearchResult:
        classification, joint, shortfall = self._classification, self._joint, None
        if joint.figures and classification.figures:
            deviation = middle(_logarithms(joint)) - classification.level
            is_short = deviation < -max(SMALLEST_LOSS / 2, LOW_DEVIATIONS * classification.noise)
            shortfall = 1 - exp(min(0.0, deviation)) if is_short else 0.0
        elif joint.fault:
            shortfall = 1.0
        return SearchResult(
            culprits=culprits.culprits(self._fleet, self._runs, self._solo, classification),
            doubts=culprits.doubts(self._fleet, self._runs, classification),
            shortfall=shortfall,
            joint_nodes=self._rounds[-1].groups[0] if self._rounds and self._rounds[-1].kind == JOINT else (),
            joint_figure=middle(joint.figures) if joint.figures else 0.0,
            joint_fault=joint.fault,
            level=exp(classification.level) if classification.figures else 0.0,
            noise=classification.noise,
            falls=classification.falls,
            rounds=tuple(self._rounds),
            runs=(*self._solo, *self._runs, *self._discarded),
        )


def _logarithms(result: GroupResult) -> tuple[float, ...]:
    """Return the figures as logarithms; a fault without figures is one bad rail."""
    if result.fault and not any(result.figures):
        return (BAD,) * max(1, len(result.figures))
    return tuple(log(figure) if figure > 0 else BAD for figure in result.figures)
