"""The one engine of paired comparison: two states by turns, judged after some pairs or more. Pure.

Both sides of a pair are measured one after the other: what changes slowly changes both. Their order is random, or a plan such as A B B A.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from nodetune.statistics import rank_tests
from nodetune.statistics.thresholds import PAIRED_FROM

Run = TypeVar("Run")
Verdict = TypeVar("Verdict")

BEFORE, AFTER = 0, 1
Order = Callable[[int], Sequence[int]]
"""The number of a pair → its sides, in the order in which they are measured."""
Measure = Callable[[Sequence[int]], "Sequence[Run] | None"]
"""Sides in their order → what was measured of each; None if one of them cannot be measured. What it raises ends the comparison."""


def shuffled(generator: random.Random) -> Order:
    """Return a random order for each pair."""

    def order(_: int) -> Sequence[int]:
        pair = [BEFORE, AFTER]
        generator.shuffle(pair)
        return pair

    return order


class Pairs(Generic[Run]):
    """The pairs of a comparison: `before` and `after` have the runs of both sides, pair by pair."""

    def __init__(self, measure: Measure[Run], order: Order) -> None:
        self._measure, self._order = measure, order
        self.before: list[Run] = []
        self.after: list[Run] = []

    def reach(self, count: int) -> bool:
        """Measure until there are `count` pairs. Return False if a side could not be measured: its pair does not count."""
        while len(self.after) < count:
            order = self._order(len(self.after))
            made = self._measure(order)
            if made is None:
                return False
            runs = dict(zip(order, made, strict=True))
            self.before.append(runs[BEFORE])
            self.after.append(runs[AFTER])
        return True

    def judged(
        self, looks: Sequence[tuple[int, float]], judge: Callable[[float], Verdict], is_clear: Callable[[Verdict], bool]
    ) -> Verdict | None:
        """Return the verdict of the first look that is clear, or of the last; None if a side could not be measured.

        `looks`: numbers of pairs, and the level of the tests there: together they are the chance of an error.
        """
        verdict = None
        for count, level in looks:
            if not self.reach(count):
                return None
            verdict = judge(level)
            if is_clear(verdict):
                break
        return verdict


@dataclass(frozen=True)
class Shift:
    """How much larger the values after are: 0.03 is three per cent, with its interval. `p`: the chance of it without a shift."""

    ratio: float
    low: float
    high: float
    p: float
    p_smaller: float


def shift(before: Sequence[float], after: Sequence[float], level: float) -> Shift:
    """Compare logarithms, pair by pair if there are enough. `level`: the chance that the interval misses the truth."""
    pairs = [late - early for early, late in zip(before, after, strict=True)]
    found = rank_tests.paired_shift(pairs, level) if len(pairs) >= PAIRED_FROM else None
    found = found or rank_tests.shift(before, after, level)
    if found is None:
        raise ValueError(f"{len(pairs)} pairs are too few for a level of {level}")
    ratio, low, high = map(math.expm1, found)
    return Shift(ratio, low, high, _p(before, after), _p(after, before))


def _p(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the chance of such a gain without one: of pairs, if there are enough."""
    if len(before) >= PAIRED_FROM:
        return rank_tests.p_positive([late - early for early, late in zip(before, after, strict=True)])
    return rank_tests.p_larger(before, after)


def p_of_both(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the chance of such a gain by the better of both tests, twice: of sides, and of pairs if there are enough."""
    p = rank_tests.p_larger(before, after)
    return min(1.0, 2 * min(p, _p(before, after))) if len(before) >= PAIRED_FROM else p
