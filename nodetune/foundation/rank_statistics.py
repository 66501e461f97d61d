"""The exact Mann-Whitney test and its inverse, the Hodges-Lehmann interval. Pure; standard library only.

It assumes no distribution and needs no table or random numbers. scipy has it too but takes 100 MB, which a tool on a
login node should not need for a few lines.
"""

from __future__ import annotations

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
    counts, refused = _orders(len(before), len(after)), 0
    allowed, tail = level / 2 * sum(counts), 0
    while tail + counts[refused] <= allowed:
        tail += counts[refused]
        refused += 1
    if refused == 0:
        return None
    differences = sorted(late - early for early in before for late in after)
    return statistics.median(differences), differences[refused - 1], differences[-refused]


def p_larger(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the probability that samples of one distribution differ at least as much. Ties count half."""
    counts = _orders(len(before), len(after))
    u = sum((late < early) + 0.5 * (late == early) for early in before for late in after)
    reached = min(len(counts), int(u + 0.5) + 1)
    return sum(counts[:reached]) / sum(counts)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for their number, in the same order (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted
