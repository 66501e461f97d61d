"""Tails of distributions, and the interval of a mean. Pure; standard library only (scipy takes 100 MB)."""

import math
import statistics
from collections.abc import Collection, Sequence

from nodetune.statistics.thresholds import MIN_SPREAD_FREEDOM

QUANTILE = statistics.NormalDist().inv_cdf(0.995)
"""Both ends of an interval of 99 %."""


def normal_tail(distance: float) -> float:
    """Return the chance of at least this many standard deviations above the mean."""
    return 0.5 * math.erfc(distance / math.sqrt(2))


def student_tail(distance: float, freedom: int) -> float:
    """Return the chance of such a distance with Student's t (Wallace's approximation by the normal distribution)."""
    if distance <= 0:
        return 1.0
    normal = math.sqrt(freedom * math.log1p(distance * distance / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return normal_tail(normal)


def _student_quantile(freedom: float) -> float:
    """Return the quantile of Student's t (Cornish-Fisher expansion; within 4 % from three degrees of freedom on)."""
    z = QUANTILE
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return z + first + second + third


def half_width(several: Collection[Sequence[float]], blocks: int, shared: int = 1) -> float:
    """Return half of the 99 % interval of a mean over `blocks`; infinite if the spread is unknown.

    `several`: the gains of each setting, block by block. Their spread is pooled, as most settings have no effect on it.
    """
    known = [each for each in several if len(each) > 1]
    free = sum(len(each) - 1 for each in known)
    if free < MIN_SPREAD_FREEDOM:
        return math.inf
    apart = sum((value - statistics.fmean(each)) ** 2 for each in known for value in each)
    return _student_quantile(free / shared) * math.sqrt(apart / free / blocks)


def binomial_tail(least: int, of: int, chance: float) -> float:
    """Return the chance of at least this number of hits, each with a `chance` between 0 and 1."""
    if not 0 < least <= of:
        return float(least <= 0)
    ways = math.lgamma(of + 1) - math.lgamma(least + 1) - math.lgamma(of - least + 1)
    term = math.exp(ways + least * math.log(chance) + (of - least) * math.log1p(-chance))
    total = 0.0
    for hits in range(least, of + 1):
        total += term
        term *= (of - hits) / (hits + 1) * chance / (1 - chance)
    return min(1.0, total)
