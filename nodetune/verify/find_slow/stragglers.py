"""Parts that compute or read their memory slower than the whole fleet's, by themselves; of few parts, than shipped. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from nodetune.statistics.distributions import normal_tail
from nodetune.statistics.outliers import robust
from nodetune.statistics.thresholds import MIN_ALIKE, MIN_STRAGGLER_LOSS, MIN_STRAGGLER_SPREAD, STRAGGLER_CHANCE
from nodetune.verify.find_slow.host_rounds import SOLO_METRICS, kind_of
from nodetune.verify.model import Expectation, Figure

Floor = Callable[[Figure], Expectation | None]
"""The shipped figure that decides about a part by itself; None without one."""


@dataclass(frozen=True)
class Straggler:
    """A part that is slow by itself. `chance`: that a healthy fleet shows such a figure anywhere; `runs`: in how many.

    `floor`: what it is below, where there are too few others to be compared with; `loss` is then from that.
    """

    host: str
    subject: str
    metric: str
    loss: float
    chance: float
    runs: int = 1
    floor: Expectation | None = None


def stragglers(figures: Sequence[Figure], floor: Floor = lambda _: None) -> list[Straggler]:
    """Return the outliers on the slow side, the worst first; of a part only its worst metric."""
    kinds: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        if figure.metric in SOLO_METRICS and figure.value > 0:
            kinds.setdefault(kind_of(figure), []).append(figure)
    tests = sum(map(len, kinds.values()))
    found = [
        each
        for alike in kinds.values()
        for each in (_outliers(alike, tests) if len(alike) >= MIN_ALIKE else _below(alike, floor))
    ]
    worst: dict[tuple[str, str], Straggler] = {}
    for each in sorted(found, key=lambda each: -each.loss):
        worst.setdefault((each.host, each.subject), each)
    return list(worst.values())


def _outliers(alike: Sequence[Figure], tests: int) -> Iterable[Straggler]:
    centre, spread = robust([figure.value for figure in alike])
    spread = max(spread, MIN_STRAGGLER_SPREAD * centre)
    for figure in alike:
        loss = 1 - figure.value / centre
        chance = tests * normal_tail((centre - figure.value) / spread)
        if loss >= MIN_STRAGGLER_LOSS and chance < STRAGGLER_CHANCE:
            yield Straggler(figure.host, figure.subject, figure.metric, loss, chance)


def _below(alike: Sequence[Figure], floor: Floor) -> Iterable[Straggler]:
    for figure in alike:
        least = floor(figure)
        if least and not least.met_by(figure):
            yield Straggler(
                figure.host, figure.subject, figure.metric, 1 - figure.value / least.bound, 0.0, floor=least
            )


def confirmed(
    first: Sequence[Straggler], again: Sequence[Figure], usual: dict[tuple[str, str], float]
) -> list[Straggler]:
    """Return those that lost at least half as much in a second run: one that falls now and then does not count."""
    second = {(figure.host, figure.subject, figure.metric): figure for figure in again}
    kept = []
    for each in first:
        figure = second.get((each.host, each.subject, each.metric))
        if figure and 1 - figure.value / (each.floor.bound if each.floor else usual[kind_of(figure)]) >= each.loss / 2:
            kept.append(replace(each, runs=2))
    return kept
