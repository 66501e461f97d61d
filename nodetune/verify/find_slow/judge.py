"""Which of several ends is slow, by runs of two ends each. One rule for nodes and for domains. Pure.

A low figure is the worse end's, and only partners that are proven good count towards a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt

from nodetune.statistics import thresholds
from nodetune.statistics.likelihood import Chances, evidence, middle, spread

Pair = tuple[int, int, float]
"""(end, other end, figure)."""


@dataclass(frozen=True)
class Meeting:
    """One run as an end sees it. `first`: the first with this partner."""

    partner: int
    figure: float
    first: bool


@dataclass(frozen=True)
class Judgement:
    """The odds of each end, and the fleet's own noise and chances of a fall."""

    odds: list[float]
    noise: float
    chances: Chances
    falls: tuple[int, int, float]


Keep = Callable[[int, Meeting], bool]


def threshold(tests: int, figure: float) -> float:
    """Return the odds at which one of this number of tests names a part with this middle figure."""
    return log(tests / thresholds.SLOW_PART_CHANCE) + (
        thresholds.SHALLOW_ODDS if figure >= thresholds.DEEP_FALL else 0.0
    )


class Judge:
    """The runs of `count` ends. `extra`: odds of each end from elsewhere; `wider`: how much wider the noise is taken."""

    def __init__(self, count: int, pairs: Sequence[Pair], extra: Sequence[float] = (), wider: float = 1.0) -> None:
        self._ends = range(count)
        self._extra = list(extra) or [0.0] * count
        self.noise = wider * spread(figure for *_, figure in pairs)
        self._chances = Chances()
        self._met: list[list[Meeting]] = [[] for _ in self._ends]
        self._accidents = self._once(pairs)
        self._known: set[tuple[int, int]] = set()
        self._add(pairs)

    def _add(self, pairs: Sequence[Pair]) -> None:
        for a, b, figure in pairs:
            first = (a, b) not in self._known
            self._known.add((a, b))
            self._met[a].append(Meeting(b, figure, first))
            self._met[b].append(Meeting(a, figure, first))

    def _once(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return one run a pair, without pairs that were low every time, as these have a cause."""
        bound = -max(thresholds.SMALLEST_LOSS / 2, thresholds.LOW_DEVIATIONS * self.noise)
        runs = Counter((a, b) for a, b, _ in pairs)
        lows = Counter((a, b) for a, b, figure in pairs if figure < bound)
        firsts: dict[tuple[int, int], Pair] = {}
        for each in pairs:
            firsts.setdefault(each[:2], each)
        self._bound = bound
        return [each for pair, each in firsts.items() if runs[pair] < 2 or lows[pair] < runs[pair]]

    def verdict(self) -> Judgement:
        """Judge all ends, with the chances of a fall that the fleet itself shows."""
        odds, falls = [0.0] * len(self._ends), (0, 0, 0.0)
        for _ in range(3):
            odds = self._weighed(lambda *_: True)
            for _ in range(2):
                odds = self._explained(odds)
            falls = self._learn(odds)
        self._sure = {end for end in self._ends if odds[end] <= thresholds.CLEAR_ODDS}
        total = [odds[end] + self._extra[end] for end in self._ends]
        return Judgement(total, self.noise, self._chances, falls)

    def named(self, tests: int, more: Sequence[Pair] = (), least: float = 0.0) -> dict[int, float]:
        """Return the ends that lose `least`, and how far their odds are above the threshold. `more` runs count too."""
        self._add(more)
        middles = {end: middle([each.figure for each in self._met[end]]) for end in self._ends if self._is_low(end)}
        bars = {end: threshold(tests, figure) for end, figure in middles.items() if -figure >= least}
        above = {end: self._by_proven(end) - bar for end, bar in bars.items()}
        return {end: odds for end, odds in above.items() if odds >= 0 and self._by_others(end) >= bars[end] / 2}

    def _weighed(self, keep: Keep) -> list[float]:
        return [self._of(end, keep) for end in self._ends]

    def _of(self, end: int, keep: Keep) -> float:
        """Weigh an end's runs, each partner once; repeats count only if that speaks for "slow"."""
        kept = [each for each in self._met[end] if keep(end, each)]
        odds = evidence([each.figure for each in kept if each.first], self.noise, self._chances)
        return evidence([each.figure for each in kept], self.noise, self._chances) if odds > 0 else odds

    def _explained(self, odds: list[float]) -> list[float]:
        """Weigh again, without low figures that the other end explains better."""
        return self._weighed(lambda end, each: each.figure >= thresholds.QUICK or odds[each.partner] <= odds[end] + 1)

    def _learn(self, odds: Sequence[float]) -> tuple[int, int, float]:
        """Take the chances from runs that no slow end explains. Return how many fell, of how many, and how far."""
        free = [figure for a, b, figure in self._accidents if odds[a] <= 0 and odds[b] <= 0]
        low = sorted(figure for figure in free if figure < self._bound)
        deep = sum(figure < thresholds.DEEP_FALL for figure in free)
        count = len(low)
        self._chances = Chances(
            (1 + count + sqrt(count)) / (4 + len(free) + sqrt(count)), (1 + deep + sqrt(deep)) / (100 + len(free))
        )
        return count, len(free), -low[count // 2] if low else 0.0

    def _is_low(self, end: int) -> bool:
        """Return whether an end was low with enough proven partners, and with nearly all that it met."""
        met = self._met[end]
        proven = [each for each in met if each.partner in self._sure]
        firsts = [each for each in met if each.first]
        if len(proven) < 3 or sum(each.first and each.figure < thresholds.QUICK for each in proven) < 2:
            return False
        return 4 * sum(each.figure >= thresholds.QUICK for each in firsts) <= len(firsts)

    def _by_proven(self, end: int, without: int = -1) -> float:
        """Weigh an end's runs with proven partners, but for one of these."""

        def keep(_: int, each: Meeting) -> bool:
            return each.partner != without and (each.partner in self._sure or each.figure >= thresholds.QUICK)

        return self._of(end, keep) + self._extra[end]

    def _by_others(self, end: int) -> float:
        """Return the odds without the partner that says most: its repeats may all be their path's."""
        return min(self._by_proven(end, partner) for partner in {each.partner for each in self._met[end]})
