"""The resolution of a screening: intervals of gains, from how far the blocks of each setting are apart. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence

MIN_VALUES = 3
"""Degrees of freedom from which the spread of blocks is known."""

SHARED = 2
"""Settings of a block share its default, so that their spreads are alike: this many times fewer degrees of freedom."""

QUANTILE = statistics.NormalDist().inv_cdf(0.995)
"""Both ends of an interval of 99 %."""


def half_width(by_setting: Collection[Sequence[float]], blocks: int, shared: int = 1) -> float:
    """Return half of the 99 % interval of a mean over `blocks`; infinite if the spread is unknown.

    `by_setting`: the gains of each setting, block by block. Their spread is pooled, as most settings have no effect on it.
    """
    known = [gains for gains in by_setting if len(gains) > 1]
    free = sum(len(gains) - 1 for gains in known)
    if free < MIN_VALUES:
        return math.inf
    squares = sum((value - statistics.fmean(gains)) ** 2 for gains in known for value in gains)
    return _student(free / shared) * math.sqrt(squares / free / blocks)


def _student(free: float) -> float:
    """Return the quantile of Student's t (Cornish-Fisher expansion; within 4 % from three degrees of freedom on)."""
    z = QUANTILE
    first = (z**3 + z) / (4 * free)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    return z + first + second + third
