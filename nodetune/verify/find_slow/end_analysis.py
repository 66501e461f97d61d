"""Which of several ends is slow, by runs of two ends each. One rule for nodes and for domains. Pure.

A low figure is the worse end's, and only partners that are proven good count towards a name.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt

from nodetune.statistics import thresholds
from nodetune.statistics.likelihood import Chances, evidence, middle, spread

Pair = tuple[int, int, float]
"""(end, other end, figure)."""


@dataclass(frozen=True)
class EndRun:
    """One run as an end sees it. `first`: the first with this partner."""

    partner: int
    figure: float
    first: bool


@dataclass(frozen=True)
class EndOdds:
    """The odds of each end, and the fleet's own noise and chances of a fall."""

    odds: list[float]
    noise: float
    chances: Chances
    falls: tuple[int, int, float]


Selection = Callable[[int, EndRun], bool]


def threshold(tests: int, figure: float) -> float:
    """Return the odds at which one of this number of tests names a part with this middle figure."""
    return log(tests / thresholds.SLOW_PART_CHANCE) + (
        thresholds.SHALLOW_ODDS if figure >= thresholds.DEEP_FALL else 0.0
    )


class EndAnalysis:
    """The runs of `count` ends. `extra`: odds of each end from elsewhere; `noise_factor`: how much wider the noise is taken."""

    def __init__(
        self, count: int, pairs: Sequence[Pair], extra: Sequence[float] = (), noise_factor: float = 1.0
    ) -> None:
        self._ends = range(count)
        self._extra = list(extra) or [0.0] * count
        self.noise = noise_factor * spread(figure for *_, figure in pairs)
        self._chances = Chances()
        self._runs: list[list[EndRun]] = [[] for _ in self._ends]
        self._unexplained = self._first_runs(pairs)
        self._pairs: set[tuple[int, int]] = set()
        self._add(pairs)

    def _add(self, pairs: Sequence[Pair]) -> None:
        for a, b, figure in pairs:
            first = (a, b) not in self._pairs
            self._pairs.add((a, b))
            self._runs[a].append(EndRun(b, figure, first))
            self._runs[b].append(EndRun(a, figure, first))

    def _first_runs(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return one run a pair, without pairs that were low every time, as these have a cause."""
        bound = -max(thresholds.SMALLEST_LOSS / 2, thresholds.LOW_DEVIATIONS * self.noise)
        runs = Counter((a, b) for a, b, _ in pairs)
        lows = Counter((a, b) for a, b, figure in pairs if figure < bound)
        firsts: dict[tuple[int, int], Pair] = {}
        for pair_run in pairs:
            firsts.setdefault(pair_run[:2], pair_run)
        self._bound = bound
        return [pair_run for pair, pair_run in firsts.items() if runs[pair] < 2 or lows[pair] < runs[pair]]

    def estimate(self) -> EndOdds:
        """Judge all ends, with the chances of a fall that the fleet itself shows."""
        odds, falls = [0.0] * len(self._ends), (0, 0, 0.0)
        for _ in range(3):
            odds = self._odds_of_all(lambda *_: True)
            for _ in range(2):
                odds = self._explain_away(odds)
            falls = self._learn_chances(odds)
        self._proven = {end for end in self._ends if odds[end] <= thresholds.CLEAR_ODDS}
        total = [odds[end] + self._extra[end] for end in self._ends]
        return EndOdds(total, self.noise, self._chances, falls)

    def slow_ends(self, tests: int, more_pairs: Sequence[Pair] = (), min_loss: float = 0.0) -> dict[int, float]:
        """Return the ends that lose `min_loss`, and how far their odds are above the threshold. `more_pairs` runs count too."""
        self._add(more_pairs)
        middles = {end: middle([run.figure for run in self._runs[end]]) for end in self._ends if self._is_low(end)}
        limits = {end: threshold(tests, figure) for end, figure in middles.items() if -figure >= min_loss}
        above = {end: self._odds_by_proven(end) - limit for end, limit in limits.items()}
        return {
            end: odds
            for end, odds in above.items()
            if odds >= 0 and self._odds_without_best_partner(end) >= limits[end] / 2
        }

    def _odds_of_all(self, selected: Selection) -> list[float]:
        return [self._odds_of(end, selected) for end in self._ends]

    def _odds_of(self, end: int, selected: Selection) -> float:
        """Weigh an end's runs, each partner once; repeats count only if that speaks for "slow"."""
        kept = [run for run in self._runs[end] if selected(end, run)]
        odds = evidence([run.figure for run in kept if run.first], self.noise, self._chances)
        return evidence([run.figure for run in kept], self.noise, self._chances) if odds > 0 else odds

    def _explain_away(self, odds: list[float]) -> list[float]:
        """Weigh again, without low figures that the other end explains better."""
        return self._odds_of_all(lambda end, run: run.figure >= thresholds.QUICK or odds[run.partner] <= odds[end] + 1)

    def _learn_chances(self, odds: Sequence[float]) -> tuple[int, int, float]:
        """Take the chances from runs that no slow end explains. Return how many fell, of how many, and how far."""
        free = [figure for a, b, figure in self._unexplained if odds[a] <= 0 and odds[b] <= 0]
        low = sorted(figure for figure in free if figure < self._bound)
        deep = sum(figure < thresholds.DEEP_FALL for figure in free)
        count = len(low)
        self._chances = Chances(
            (1 + count + sqrt(count)) / (4 + len(free) + sqrt(count)), (1 + deep + sqrt(deep)) / (100 + len(free))
        )
        return count, len(free), -low[count // 2] if low else 0.0

    def _is_low(self, end: int) -> bool:
        """Return whether an end was low with enough proven partners, and with nearly all that it met."""
        runs = self._runs[end]
        proven = [run for run in runs if run.partner in self._proven]
        firsts = [run for run in runs if run.first]
        if len(proven) < 3 or sum(run.first and run.figure < thresholds.QUICK for run in proven) < 2:
            return False
        return 4 * sum(run.figure >= thresholds.QUICK for run in firsts) <= len(firsts)

    def _odds_by_proven(self, end: int, without: int = -1) -> float:
        """Weigh an end's runs with proven partners, but for one of these."""

        def selected(_: int, run: EndRun) -> bool:
            return run.partner != without and (run.partner in self._proven or run.figure >= thresholds.QUICK)

        return self._odds_of(end, selected) + self._extra[end]

    def _odds_without_best_partner(self, end: int) -> float:
        """Return the odds without the partner that says most: its repeats may all be their path's."""
        return min(self._odds_by_proven(end, partner) for partner in {run.partner for run in self._runs[end]})
