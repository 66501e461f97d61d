"""A rate against a rate: which hosts have more episodes than the rate of their like explains, by an exact test. Pure.

Of two Poisson rates that are equal, the number of the one, given both numbers together, is binomial by the share of its time
(Przyborowski and Wilenski 1940; E. L. Lehmann, Testing Statistical Hypotheses, 4.5). No rate is estimated, so few episodes are enough.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from nodetune.statistics.distributions import binomial_tail
from nodetune.statistics.rank_tests import holm


@dataclass(frozen=True)
class Episodes:
    """The number of episodes of a host in its days. `like`: what it is, such as its model; those with the same are compared."""

    host: str
    like: str
    count: int
    days: float


def p_higher(count: int, days: float, others: int, other_days: float) -> float:
    """Return the chance of at least this `count` in its days, if its rate is that of the others. 1 without others."""
    if days <= 0 or other_days <= 0:
        return 1.0
    return binomial_tail(count, count + others, days / (days + other_days))


def p_values(hosts: Sequence[Episodes]) -> list[float]:
    """Return for each host the chance of its number by the rate of the others like it, adjusted for the number of hosts (Holm)."""
    counts: Counter[str] = Counter()
    days: dict[str, float] = defaultdict(float)
    for each in hosts:
        counts[each.like] += each.count
        days[each.like] += each.days
    return holm(
        [p_higher(each.count, each.days, counts[each.like] - each.count, days[each.like] - each.days) for each in hosts]
    )
