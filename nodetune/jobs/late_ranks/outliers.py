"""Which ranks are later than the others by more than chance and by enough to matter. Pure.

Ranks of communicators that do the same (same collective, size and number of ranks) are one sample. GPUs of one model always
differ a little, so that one of them is always the last: it is named only if all of these hold, corrected for all comparisons.

1. It is late by at least 3 % of the time between two such collectives, in the median.
2. That is far outside of the spread of the other ranks (Rosner's test for several outliers, at most a quarter of the ranks).
3. It is late in nearly every twentieth of the run: a pause or a drift is not enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from nodetune.jobs.late_ranks.model import Lateness

ALPHA = 0.001
"""The chance that one rank is named in all jobs of a call, if none is slow."""

WORTH = 0.03
SPREAD = 0.003
"""The least spread of healthy ranks: fewer than these cannot show how much GPUs differ."""

MIN_FREEDOM = 5


def late(rows: Sequence[Lateness], tests: int, largest: float = 0.25) -> list[Lateness]:
    """Return those that are late, the latest first: at most the share `largest` of the rows."""
    ranked = sorted(rows, key=lambda row: -row.share)
    for count in range(int(largest * len(ranked)), 0, -1):
        suspects, others = ranked[:count], ranked[count:]
        if all(_is_late(row, others, tests) for row in suspects):
            return suspects
    return []


def tests(rows: Sequence[Lateness]) -> int:
    """Return how many comparisons `late` may make of these rows."""
    return len(rows) * max(1, len(rows) // 2)


def comparable(rows: Sequence[Lateness]) -> bool:
    """Return whether there are enough rows for one to be late."""
    return len(rows) - 1 - len({row.communicator for row in rows}) >= MIN_FREEDOM


def _is_late(row: Lateness, others: Sequence[Lateness], tests: int) -> bool:
    freedom = len(others) - len({other.communicator for other in others})
    if row.share < WORTH or freedom < MIN_FREEDOM:
        return False
    shares = [other.share for other in others]
    spread = max(SPREAD, stdev(shares)) * math.sqrt(1 + 1 / len(others))
    distance = (row.share - fmean(shares)) / spread
    return tests * _chance(distance, freedom) <= ALPHA and tests * _by_blocks(row.blocks) <= ALPHA


def _chance(distance: float, freedom: int) -> float:
    """Return the chance of such a distance with Student's t (Wallace's approximation by the normal distribution)."""
    if distance <= 0:
        return 1.0
    normal = math.sqrt(freedom * math.log1p(distance * distance / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return math.erfc(normal / math.sqrt(2)) / 2


def _by_blocks(blocks: Sequence[float]) -> float:
    """Return the chance that a rank like the others is late in this many parts of the run: in each one at most a quarter are."""
    hits = sum(block >= WORTH / 2 for block in blocks)
    return sum(
        math.comb(len(blocks), more) * 0.25**more * 0.75 ** (len(blocks) - more)
        for more in range(hits, len(blocks) + 1)
    )
