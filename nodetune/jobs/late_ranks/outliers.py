"""Which ranks are later than the others by more than chance and by enough to matter. Pure.

Ranks of communicators that do the same (same collective, size and number of ranks) are one sample. GPUs of one model always
differ a little, so that one of them is always the last: it is named only if all of these hold, corrected for all comparisons.

1. It is late by at least 3 % of the time between two such collectives, in the median.
2. That is far outside of the spread of the other ranks (Rosner's test for several outliers, at most a quarter of the ranks).
3. It is late in nearly every twentieth of the run: a pause or a drift is not enough.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from nodetune.jobs.late_ranks.model import Lateness
from nodetune.statistics import thresholds
from nodetune.statistics.distributions import binomial_tail, student_tail


def late(rows: Sequence[Lateness], tests: int, largest: float = thresholds.MAX_OUTLIER_SHARE) -> list[Lateness]:
    """Return those that are late, the latest first: at most the share `largest` of the rows."""
    ranked = sorted(rows, key=lambda row: -row.share)
    for count in range(int(largest * len(ranked)), 0, -1):
        suspects, others = ranked[:count], ranked[count:]
        if suspects[-1].share >= thresholds.MIN_LATENESS and _are_late(suspects, others, tests):
            return suspects
    return []


def tests(rows: Sequence[Lateness]) -> int:
    """Return how many comparisons `late` may make of these rows."""
    return len(rows) * max(1, len(rows) // 2)


def comparable(rows: Sequence[Lateness]) -> bool:
    """Return whether there are enough rows for one to be late."""
    return len(rows) - 1 - len({row.communicator for row in rows}) >= thresholds.MIN_RANK_FREEDOM


def _are_late(suspects: Sequence[Lateness], others: Sequence[Lateness], tests: int) -> bool:
    """Return whether the last of the suspects is far outside of the others, and all of them are late all along."""
    freedom = len(others) - len({other.communicator for other in others})
    if freedom < thresholds.MIN_RANK_FREEDOM:
        return False
    shares = [other.share for other in others]
    spread = max(thresholds.MIN_RANK_SPREAD, stdev(shares)) * math.sqrt(1 + 1 / len(others))
    distance = (suspects[-1].share - fmean(shares)) / spread
    return tests * student_tail(distance, freedom) <= thresholds.LATE_RANK_CHANCE and all(
        tests * _by_blocks(row.blocks) <= thresholds.LATE_RANK_CHANCE for row in suspects
    )


def _by_blocks(blocks: Sequence[float]) -> float:
    """Return the chance that a rank like the others is late in this many parts of the run: in each one at most a quarter are."""
    return binomial_tail(
        sum(block >= thresholds.MIN_LATENESS / 2 for block in blocks), len(blocks), thresholds.MAX_OUTLIER_SHARE
    )
