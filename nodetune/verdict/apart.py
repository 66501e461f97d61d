"""Which of several siblings stand apart, on the bad side, by a robust statistic."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from nodetune.verdict import Expectation, Figure

ENOUGH = 4
"""With this many there is a majority, even beside one that is far off."""

ROBUST_DEVIATIONS = 3.5
"""Iglewicz and Hoaglin's cut for the modified z-score; 1.4826 makes the median deviation one of a normal distribution."""

AS_NORMAL = 1.4826
FEW = 3.0
"""Two or three siblings have no majority: then one is apart when it is this many tolerances worse than the best."""


@dataclass(frozen=True)
class Siblings:
    """Several figures of one kind, and the worst value that does not stand apart from them."""

    count: int
    centre: float
    bound: float

    @property
    def majority(self) -> bool:
        return self.count >= ENOUGH


def among(figures: Sequence[Figure], tolerance: float) -> Siblings | None:
    """`tolerance` is a fraction of the centre. None: there are no siblings."""
    if len(figures) < 2:
        return None
    values, sign = [each.value for each in figures], figures[0].sign
    if len(values) < ENOUGH:
        best = max(values) if sign > 0 else min(values)
        return Siblings(len(values), best, best - sign * abs(best) * tolerance * FEW)
    centre = statistics.median(values)
    spread = AS_NORMAL * statistics.median(abs(value - centre) for value in values)
    allowed = max(ROBUST_DEVIATIONS * spread, abs(centre) * tolerance)
    return Siblings(len(values), centre, centre - sign * allowed)


def expectation(siblings: Siblings, what: str) -> Expectation:
    """`what`: siblings of which kind, in the plural."""
    others = siblings.count - 1
    if siblings.majority:
        told = f"{others} other {what}: median {siblings.centre:.4g}"
    else:
        told = f"the best of {siblings.count} {what}: {siblings.centre:.4g}"
    return Expectation("siblings", siblings.bound, told, siblings.centre)
