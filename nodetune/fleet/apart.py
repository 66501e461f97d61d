"""Numbers that stand apart from the rest: by median and MAD, with floors. Pure; standard library only.

A value stands apart that is further than 6 robust standard deviations (1.4826 MAD) from the median, further than `least`,
and more than `times` the median. Of a normal distribution that is one value in 10^9; heavier tails are what the floors are
for: a fleet where all are alike has a MAD of zero, and any noise would be infinitely far. Where more than a quarter stand
apart they are no outliers but a second population, and none is named.
Source: https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm (it proposes 3.5 for single data sets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

DEVIATIONS = 6.0
MAD_TO_SIGMA = 1.4826
MOST = 0.25
FEWEST = 4


@dataclass(frozen=True)
class Bounds:
    """From where on a value stands apart. `low` is minus infinity where only large values count."""

    middle: float
    low: float
    high: float


EVERYTHING = float("-inf"), float("inf")


def bounds(values: Sequence[float], least: float, times: float, below: bool) -> Bounds:
    """The bounds for these values; nothing is outside where so many would be that they are no outliers, or too few tell."""
    middle = median(values)
    spread = median([abs(each - middle) for each in values]) * MAD_TO_SIGMA
    distance = max(least, spread * DEVIATIONS, abs(middle) * (times - 1))
    found = Bounds(middle, middle - distance if below else EVERYTHING[0], middle + distance)
    outside = sum(not found.low <= each <= found.high for each in values)
    few = len(values) < FEWEST or outside > len(values) * MOST
    return Bounds(middle, *EVERYTHING) if few else found
