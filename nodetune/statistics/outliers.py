"""Outliers among peers, by median and median deviation (MAD), with floors. Pure.

A floor is for heavier tails: values that are all alike have a deviation of zero, and any noise would be infinitely far.
Source: https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from nodetune.statistics import thresholds

MAD_TO_SIGMA = 1.4826
"""Factor from the median deviation of a normal distribution to its standard deviation."""


def robust(values: Sequence[float]) -> tuple[float, float]:
    """Return the median, and the standard deviation estimated by the median deviation."""
    from statistics import (
        median,  # here: it takes milliseconds, which an audit without numbers to compare does not need
    )

    middle = median(values)
    return middle, MAD_TO_SIGMA * median([abs(each - middle) for each in values])


@dataclass(frozen=True)
class Peers:
    """Several figures of one kind and the worst value that is not an outlier."""

    count: int
    centre: float
    bound: float

    @property
    def majority(self) -> bool:
        return self.count >= thresholds.MIN_FOR_MAJORITY


def worst(centre: float, spread: float, tolerance: float, sign: int) -> float:
    """Return the worst value that is not an outlier. `tolerance`: a fraction of the centre; `sign`: 1 if more is better, else -1."""
    return centre - sign * max(thresholds.PEER_DEVIATIONS * spread, abs(centre) * tolerance)


def among(values: Sequence[float], tolerance: float, sign: int) -> Peers | None:
    """Return the peers, or None if there are none."""
    if len(values) < 2:
        return None
    if len(values) < thresholds.MIN_FOR_MAJORITY:
        best = max(values) if sign > 0 else min(values)
        return Peers(len(values), best, best - sign * abs(best) * tolerance * thresholds.FEW_PEER_TOLERANCES)
    centre, spread = robust(values)
    return Peers(len(values), centre, worst(centre, spread, tolerance, sign))


@dataclass(frozen=True)
class Bounds:
    """The bounds of normal values. `low` is minus infinity if only large values count."""

    middle: float
    low: float
    high: float


def bounds(values: Sequence[float], least: float, times: float, below: bool) -> Bounds:
    """Return the bounds of hosts' values; infinite if too many would be outside, or if there are too few values.

    An outlier is also further than `least` from the median, and more than `times` the median.
    """
    middle, spread = robust(values)
    distance = max(least, spread * thresholds.HOST_DEVIATIONS, abs(middle) * (times - 1))
    found = Bounds(middle, middle - distance if below else -inf, middle + distance)
    outside = sum(not found.low <= each <= found.high for each in values)
    few = len(values) < thresholds.MIN_FOR_MAJORITY or outside > len(values) * thresholds.MAX_OUTLIER_SHARE
    return Bounds(middle, -inf, inf) if few else found
