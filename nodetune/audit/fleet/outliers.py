"""Find outliers by median and MAD, with floors. Pure; standard library only.

A value is an outlier if it is further than 6 robust standard deviations (1.4826 MAD) from the median, further than
`least`, and more than `times` the median. In a normal distribution that is one value in 10^9. The floors are for heavier
tails: a fleet whose hosts are all alike has a MAD of zero, and any noise would be infinitely far. If more than a quarter
of the values are outside, they are a second population, and none is reported.
Source: https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm (it proposes 3.5 for single data sets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodetune.foundation import stats

DEVIATIONS = 6.0
MAX_SHARE = 0.25
MIN_HOSTS = 4


@dataclass(frozen=True)
class Bounds:
    """The bounds of normal values. `low` is minus infinity if only large values count."""

    middle: float
    low: float
    high: float


EVERYTHING = float("-inf"), float("inf")


def bounds(values: Sequence[float], least: float, times: float, below: bool) -> Bounds:
    """Return the bounds for these values; infinite if too many would be outside, or if there are too few values."""
    middle, spread = stats.robust(values)
    distance = max(least, spread * DEVIATIONS, abs(middle) * (times - 1))
    found = Bounds(middle, middle - distance if below else EVERYTHING[0], middle + distance)
    outside = sum(not found.low <= each <= found.high for each in values)
    few = len(values) < MIN_HOSTS or outside > len(values) * MAX_SHARE
    return Bounds(middle, *EVERYTHING) if few else found
