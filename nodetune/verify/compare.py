"""Find real changes between two results and separate them from noise. Pure.

A figure has one value for each run (`--repeat N`) because repeats in one process share memory placement and clocks. Two
sides are compared by the exact Mann-Whitney test, inverted to the Hodges-Lehmann interval: the shift between the
sides, as a ratio, that the test does not reject at LEVEL (nodetune/statistics/rank_tests.py).

A change is real if the interval excludes no change, and if the shift and the change of the medians (which reports
show) both exceed the drift of such figures from day to day (TOLERANCE of the measurement). Disturbed
runs do not count. The smallest change that the repeats can show is the width of the interval plus twice the
drift: a larger loss would certainly have been found.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nodetune.statistics import rank_tests
from nodetune.statistics.thresholds import COMPARED_LEVEL, MIN_COMPARED_RUNS
from nodetune.verify import figures, reference
from nodetune.verify.model import Figure

LEVEL, MIN_RUNS = COMPARED_LEVEL, MIN_COMPARED_RUNS
"""Also for commands that measure before and after their change, and for reports."""

BETTER, WORSE, SAME, UNSURE = "better", "worse", "no change", "too few runs"


@dataclass(frozen=True)
class FigureChange:
    """One figure before and after. Changes are fractions: -0.05 is five per cent less, better or worse by its kind.

    `change` is that of the medians. `shift` and `interval` are those of Hodges and Lehmann.
    """

    before: Figure
    after: Figure
    status: str
    change: float
    shift: float | None = None
    interval: tuple[float, float] | None = None
    smallest: float | None = None

    @property
    def lost(self) -> int:
        """The number of runs that do not count because they were disturbed."""
        return self.before.lost + self.after.lost


def compare(before: Iterable[Figure], after: Iterable[Figure]) -> list[FigureChange]:
    """Compare the figures that both sides have, in the order of the first."""
    known = {figures.place(each): each for each in after}
    pairs = [(each, known.get(figures.place(each))) for each in before]
    return [_change(one, other) for one, other in pairs if other is not None]


def missing(before: Iterable[Figure], after: Iterable[Figure]) -> list[Figure]:
    """Return the figures of the first side that the other lacks, such as those of a GPU that is gone."""
    known = set(map(figures.place, after))
    return [each for each in before if figures.place(each) not in known]


def _change(before: Figure, after: Figure) -> FigureChange:
    change = after.value / before.value - 1 if before.value else 0.0
    early, late = before.by_run, after.by_run
    if before.disturbance or after.disturbance:
        return FigureChange(before, after, UNSURE, change)
    if min(len(early), len(late)) < MIN_RUNS or min(*early, *late) <= 0:
        return FigureChange(before, after, UNSURE, change)
    found = rank_tests.shift([math.log(value) for value in early], [math.log(value) for value in late], LEVEL)
    if found is None:
        return FigureChange(before, after, UNSURE, change)
    drift = reference.tolerance(before.measurement, before.metric, "drift")
    middle, low, high = (math.expm1(each) for each in found)
    real = (low > 0 or high < 0) and min(abs(middle), abs(change)) > drift and change * middle > 0
    worse = change * before.sign < 0
    status = (WORSE if worse else BETTER) if real else SAME
    return FigureChange(before, after, status, change, middle, (low, high), smallest(found, drift, before.sign))


def smallest(found: tuple[float, float, float], drift: float, sign: int) -> float:
    """Return the smallest visible loss as a fraction: the width of the interval and twice the drift."""
    logs = (found[2] - found[1]) + 2 * abs(math.log1p(-sign * drift))
    return abs(math.expm1(-sign * logs))
