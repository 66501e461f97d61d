"""The exact Mann-Whitney test, the exact signed-rank test of pairs, their intervals (Hodges-Lehmann), and Holm. Pure; standard library only.

It assumes no distribution and needs no table or random numbers. scipy has it too but takes 100 MB, which a tool on a
login node should not need for a few lines.
"""

import statistics
from collections.abc import Sequence
from functools import cache


@cache
def _orders(first: int, second: int) -> tuple[int, ...]:
    """Return the number of orders of two samples without ties for each U from 0 (the exact null distribution)."""
    if first == 0 or second == 0:
        return (1,)
    last_of_first, last_of_second = _orders(first - 1, second), _orders(first, second - 1)
    counts = [0] * (first * second + 1)
    for u, count in enumerate(last_of_first):
        counts[u + second] += count
    for u, count in enumerate(last_of_second):
        counts[u] += count
    return tuple(counts)


def shift(before: Sequence[float], after: Sequence[float], level: float) -> tuple[float, float, float] | None:
    """Return (estimate, low, high) of after - before at confidence 1 - level; None if there are too few."""
    differences = sorted(late - early for early in before for late in after)
    return _interval(differences, _orders(len(before), len(after)), level)


def _interval(found: Sequence[float], counts: Sequence[int], level: float) -> tuple[float, float, float] | None:
    """Return (median, low, high) of sorted values, whose ranks have the null distribution `counts`."""
    refused, allowed, tail = 0, level / 2 * sum(counts), 0
    while tail + counts[refused] <= allowed:
        tail += counts[refused]
        refused += 1
    return (statistics.median(found), found[refused - 1], found[-refused]) if refused else None


def p_larger(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the probability that samples of one distribution differ at least as much. Ties count half."""
    counts = _orders(len(before), len(after))
    u = sum((late < early) + 0.5 * (late == early) for early in before for late in after)
    reached = min(len(counts), int(u + 0.5) + 1)
    return sum(counts[:reached]) / sum(counts)


@cache
def _signs(count: int) -> tuple[int, ...]:
    """Return the number of choices of signs for each sum of positive ranks from 0 (the exact null distribution)."""
    counts = [1]
    for rank in range(1, count + 1):
        longer = [*counts, *[0] * rank]
        counts = [each + (longer[at - rank] if at >= rank else 0) for at, each in enumerate(longer)]
    return tuple(counts)


def _averages(differences: Sequence[float]) -> list[float]:
    return sorted((one + other) / 2 for at, one in enumerate(differences) for other in differences[at:])


def paired_shift(differences: Sequence[float], level: float) -> tuple[float, float, float] | None:
    """Return (estimate, low, high) of paired differences at confidence 1 - level; None if there are too few."""
    return _interval(_averages(differences), _signs(len(differences)), level)


def p_positive(differences: Sequence[float]) -> float:
    """Return the probability that paired differences around zero are at least as positive. Ties count half."""
    counts = _signs(len(differences))
    positive = int(sum((each > 0) + 0.5 * (each == 0) for each in _averages(differences)))
    return sum(counts[positive:]) / sum(counts)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for their number, in the same order (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted
