"""A search in progress: it plans a round, takes its answers, and says in the end what they show. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import comb, exp, log, log2
from statistics import median

from nodetune.verify.find_slow import culprits
from nodetune.verify.find_slow.classify import classify
from nodetune.verify.find_slow.likelihood import BAD, SMALLEST, USUAL_NOISE, level, middle, unsure
from nodetune.verify.find_slow.model import PATH, SOLO, WHOLE, Answer, Classification, Fleet, Part, Result, Round, Run
from nodetune.verify.find_slow.schedule import Schedule

DRIFT = 0.02
"""A round whose witnesses moved by more than this is read against them."""

BY_CHANCE = 0.01
"""Witnesses that fell one by one are no drift: the chance of their number must be below this."""

MIN_ROUNDS = 10
"""The bound of rounds of small fleets: fewer pairs run at once there."""


def most_rounds(count: int) -> int:
    """Return the bound of rounds for a number of nodes."""
    return max(MIN_ROUNDS, int(log2(count)) + 4) + (count % 2 and count > 2)


class Search:
    """Plan the `next_round`, have it run, `add` its answers, until there is none: then the `result`.

    `more`: rounds beyond the bound, for what it leaves undecided.
    """

    def __init__(self, fleet: Fleet, more: int = 0) -> None:
        self._fleet = fleet
        self._schedule = Schedule(fleet, most_rounds(len(fleet.nodes)) + more)
        self._rounds: list[Round] = []
        self._solo: list[Run] = []
        self._runs: list[Run] = []
        self._unread: list[Run] = []
        self._whole = Answer()
        self._found = Classification([], set(), set())
        self._unseen = 0.0  # the largest drift that a repeat may hide

    def next_round(self) -> Round | None:
        """Return the next round to run, after the answers of the one before were added. None: that was the last."""
        done = len(self._rounds)
        if done and self._rounds[-1].kind == WHOLE:
            return None
        if first := self._schedule.first(done):
            return first
        self._found = classify(self._fleet, self._solo, self._runs, self._unseen)
        met = Counter(run.nodes for run in (*self._runs, *self._unread))
        return self._schedule.repeat(done, self._found, met) or self._schedule.last(self._found)

    def add(self, planned: Round, answers: Sequence[Answer]) -> None:
        """Take the answers of a round, in the order of its groups."""
        domain, number = self._fleet.domains, len(self._rounds)
        self._rounds.append(planned)
        runs = [
            Run(
                group,
                _logarithms(answer),
                answer.fault,
                number,
                ring=planned.ring,
                near=len({domain[node] for node in group}) == 1,
                loaded=planned.loaded,
            )
            for group, answer in zip(planned.groups, answers, strict=True)
            if answer.figures or answer.fault
        ]
        if planned.kind == WHOLE:
            (self._whole,) = answers
        elif planned.kind == SOLO:
            self._solo = runs
        else:
            self._runs += self._steady(runs)

    def _steady(self, runs: list[Run]) -> list[Run]:
        """Take a drift of the whole fleet out of a round: what its near pairs moved against the ring.

        Where that may be a drift, or witnesses that fell by chance, the round says only what is broken.
        """
        moved, sure = (self._ring_moved(runs), True) if runs and runs[0].ring else self._moved(runs)
        if not moved:
            return runs
        if not sure:
            self._unread += [run for run in runs if min(run.rails) > BAD]
            return [run for run in runs if min(run.rails) <= BAD]
        return [replace(run, rails=tuple(rail - moved if rail > BAD else rail for rail in run.rails)) for run in runs]

    def _ring_moved(self, runs: Sequence[Run]) -> float:
        """Compare the pairs of a later round of the ring with the others of its first."""
        before = [middle(run.rails) for run in self._runs if run.ring and run.near and run.round == 1]
        now = [middle(run.rails) for run in runs if run.near]
        moved = level(now) - level(before) if min(len(now), len(before)) >= 4 else 0.0
        return moved if abs(moved) > self._bound(len(now)) else 0.0

    def _moved(self, runs: Sequence[Run]) -> tuple[float, bool]:
        """Compare repeated good pairs with their figures of the ring. Return the move, and whether it is surely no chance."""
        first = {run.nodes: middle(run.rails) for run in self._runs if run.ring and run.near}
        pairs = [(middle(run.rails), first[run.nodes]) for run in runs if run.nodes in first and self._is_witness(run)]
        changes = [now - then for now, then in pairs if min(now, then) > BAD]
        moved = median(changes) if changes else 0.0
        bound = self._bound(len(changes))
        if not any(run.loaded for run in runs):
            self._unseen = max(self._unseen, bound)
        if abs(moved) <= bound:
            return 0.0, True
        same = sum(change * moved > 0 and abs(change) > bound for change in changes)
        return moved, self._chance(same, len(changes)) < BY_CHANCE

    def _chance(self, least: int, of: int) -> float:
        """Return the chance that at least this number of witnesses fell one by one."""
        count, every, _ = self._found.falls
        one = (1 + count) / (4 + every)
        return sum(comb(of, fell) * one**fell * (1 - one) ** (of - fell) for fell in range(least, of + 1))

    def _bound(self, count: int) -> float:
        return max(DRIFT, unsure(self._found.noise or USUAL_NOISE, count))

    def _is_witness(self, run: Run) -> bool:
        """Return whether a repeated pair is good. A path in doubt was chosen for a low figure, and the next is mostly higher."""
        return set(run.nodes) <= self._found.clear and Part(PATH, run.nodes) not in self._found.doubts

    def result(self) -> Result:
        found, whole = self._found, self._whole
        left = None
        if whole.figures and found.figures:
            short = middle(_logarithms(whole)) - found.level
            left = 1 - exp(min(0.0, short)) if short < -max(SMALLEST / 2, 2.5 * found.noise) else 0.0
        elif whole.fault:
            left = 1.0
        return Result(
            culprits=culprits.culprits(self._fleet, self._runs, self._solo, found),
            doubts=culprits.doubts(self._fleet, self._runs, found),
            left=left,
            whole=self._rounds[-1].groups[0] if self._rounds and self._rounds[-1].kind == WHOLE else (),
            whole_figure=middle(whole.figures) if whole.figures else 0.0,
            whole_fault=whole.fault,
            level=exp(found.level) if found.figures else 0.0,
            noise=found.noise,
            falls=found.falls,
            rounds=tuple(self._rounds),
            runs=(*self._solo, *self._runs, *self._unread),
        )


def _logarithms(answer: Answer) -> tuple[float, ...]:
    """Return the figures as logarithms; a fault without figures is one bad rail."""
    if answer.fault and not any(answer.figures):
        return (BAD,) * max(1, len(answer.figures))
    return tuple(log(each) if each > 0 else BAD for each in answer.figures)
