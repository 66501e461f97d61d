"""The statistics: what a healthy run gives, how far runs scatter, and how much figures speak for a slow part. Pure.

Figures are logarithms, compared with the level of their like. "Well" is a mixture: normal noise, or with a certain chance a
fall of any depth. So one low run never says more than the logarithm of that chance, however deep it is: repeats decide.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt

from nodetune.statistics import thresholds

BAD = -9.0
"""The figure of a run that hangs, fails or moves wrong data."""

QUARTILE = 0.67
"""Standard deviations from the middle of normal noise to its upper quartile."""


@dataclass(frozen=True)
class Chances:
    """The chances that a healthy run falls: at all, and far."""

    any: float = thresholds.FALL_CHANCE
    deep: float = thresholds.DEEP_FALL_CHANCE


def middle(figures: Sequence[float]) -> float:
    """Return the upper median."""
    return sorted(figures)[len(figures) // 2]


def unsure(noise: float, count: int) -> float:
    """Return how far the middle of that number of runs may be off."""
    return thresholds.LEVEL_DEVIATIONS * noise / sqrt(max(1, count - 1))


def spread(figures: Iterable[float]) -> float:
    """Return the noise of figures around 0, from their upper half: slow parts are in the lower."""
    high = [each for each in figures if each > 0]
    total = sum(each * each for each in high) + thresholds.NOISE_WEIGHT * thresholds.USUAL_NOISE**2
    return max(thresholds.MIN_NOISE, sqrt(total / (len(high) + thresholds.NOISE_WEIGHT)))


def level(figures: Iterable[float]) -> float:
    """Return the figure of a healthy run: the upper quartile, moved down to the middle of the noise."""
    good = sorted(each for each in figures if each > BAD)
    if not good:
        return 0.0
    upper = good[min(len(good) - 1, -(-3 * (len(good) - 1) // 4))]
    noise, found = thresholds.USUAL_NOISE, upper
    for _ in range(3):
        found = upper - QUARTILE * noise
        noise = spread(each - found for each in good)
    return found


def evidence(figures: Sequence[float], noise: float, chances: Chances) -> float:
    """Return the logarithm of the odds "slow" to "well" by all figures of one part; 0 without figures."""
    if not figures:
        return 0.0
    cut = [max(each, -1.0) for each in figures]
    loss = min(1.0, max(thresholds.SMALLEST_LOSS, -middle(cut)))
    scale, sound = loss / noise**2, log(1 - chances.any)
    falls = log(thresholds.BROKEN_CHANCE), log(chances.deep), log(chances.any)
    total, lowest = 0.0, -loss - thresholds.FAR_BELOW * noise
    for each in cut:
        if each < lowest:
            continue
        fall = falls[0] if each <= -1.0 else falls[1] if each < thresholds.DEEP_FALL else falls[2]
        well = sound + scale * (each + loss / 2)
        high, low = (well, fall) if well > fall else (fall, well)
        total += max(thresholds.MAX_WELL_ODDS, -high - log1p(exp(low - high)))
    return total
