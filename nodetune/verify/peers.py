"""Find peers that are outliers on the bad side, by a robust statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodetune.foundation import stats
from nodetune.verify.model import PEERS, Expectation, Figure

ENOUGH = 4
"""With this many, there is a majority even if one is far off."""

ROBUST_DEVIATIONS = 3.5
"""Iglewicz and Hoaglin's cut for the modified z-score."""

FEW = 3.0
"""Two or three peers have no majority: one is an outlier if it is this many tolerances worse than the best."""


@dataclass(frozen=True)
class Peers:
    """Several figures of one kind and the worst value that is not an outlier."""

    count: int
    centre: float
    bound: float

    @property
    def majority(self) -> bool:
        return self.count >= ENOUGH


def among(figures: Sequence[Figure], tolerance: float) -> Peers | None:
    """Return the peers, or None if there are none. `tolerance` is a fraction of the centre."""
    if len(figures) < 2:
        return None
    values, sign = [each.value for each in figures], figures[0].sign
    if len(values) < ENOUGH:
        best = max(values) if sign > 0 else min(values)
        return Peers(len(values), best, best - sign * abs(best) * tolerance * FEW)
    centre, spread = stats.robust(values)
    allowed = max(ROBUST_DEVIATIONS * spread, abs(centre) * tolerance)
    return Peers(len(values), centre, centre - sign * allowed)


def expectation(group: Peers, what: str) -> Expectation:
    """Return the expectation from peers; `what` is their kind in the plural."""
    others = group.count - 1
    if group.majority:
        told = f"{others} other {what}: median {group.centre:.4g}"
    else:
        told = f"the best of {group.count} {what}: {group.centre:.4g}"
    return Expectation(PEERS, group.bound, told, group.centre)
