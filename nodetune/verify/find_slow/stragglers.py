"""Parts that compute or read their memory slower than the whole fleet's, by themselves; of few parts, than shipped. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_high

from nodetune.facts.machine import Machine
from nodetune.foundation import by_key
from nodetune.statistics.distributions import normal_tail
from nodetune.statistics.outliers import robust
from nodetune.statistics.thresholds import MIN_ALIKE, MIN_STRAGGLER_LOSS, MIN_STRAGGLER_SPREAD, STRAGGLER_CHANCE
from nodetune.verify import hardware_limits, reference
from nodetune.verify.model import Expectation, Figure

SOLO_METRICS = ("bf16", "bf16_sustained", "device_copy", "local")
"""Metrics of a host by itself that show how fast its parts are. Others of the same measurements are for people."""


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


def kind_of(figure: Figure) -> tuple[str, str]:
    return figure.measurement, figure.metric


def usual_figures(figures: Iterable[Figure]) -> dict[tuple[str, str], float]:
    """Return the middle figure over the fleet of each metric that shows how fast a part is by itself."""
    return {kind: median_high(figure.value for figure in alike) for kind, alike in _by_kind(figures).items()}


def _by_kind(figures: Iterable[Figure]) -> dict[tuple[str, str], list[Figure]]:
    return by_key((kind_of(each), each) for each in figures if each.metric in SOLO_METRICS and each.value > 0)


def stragglers(figures: Sequence[Figure], machines: Mapping[str, Machine]) -> list[Straggler]:
    """Return the outliers on the slow side, the worst first; of a part only its worst metric. `machines`: by host."""
    kinds = _by_kind(figures)
    tests = sum(map(len, kinds.values()))
    candidates = [
        straggler
        for alike in kinds.values()
        for straggler in (_outliers(alike, tests) if len(alike) >= MIN_ALIKE else _below(alike, machines))
    ]
    worst: dict[tuple[str, str], Straggler] = {}
    for straggler in sorted(candidates, key=lambda straggler: -straggler.loss):
        worst.setdefault((straggler.host, straggler.subject), straggler)
    return list(worst.values())


def _outliers(alike: Sequence[Figure], tests: int) -> Iterable[Straggler]:
    centre, spread = robust([figure.value for figure in alike])
    spread = max(spread, MIN_STRAGGLER_SPREAD * centre)
    for figure in alike:
        loss = 1 - figure.value / centre
        chance = tests * normal_tail((centre - figure.value) / spread)
        if loss >= MIN_STRAGGLER_LOSS and chance < STRAGGLER_CHANCE:
            yield Straggler(figure.host, figure.subject, figure.metric, loss, chance)


def _below(alike: Sequence[Figure], machines: Mapping[str, Machine]) -> Iterable[Straggler]:
    for figure in alike:
        machine = machines.get(figure.host)
        floor = _floor(figure, machine) if machine else None
        if floor and not floor.met_by(figure):
            yield Straggler(
                figure.host, figure.subject, figure.metric, 1 - figure.value / floor.bound, 0.0, floor=floor
            )


def _floor(figure: Figure, machine: Machine) -> Expectation | None:
    """Return the shipped figure if being below it decides."""
    expected, entry = reference.shipped(figure, machine, hardware_limits.of(figure, machine)) or (None, None)
    return expected if expected and entry and entry.decides(met=False) else None


def confirmed(
    first: Sequence[Straggler], again: Sequence[Figure], usual: dict[tuple[str, str], float]
) -> list[Straggler]:
    """Return those that lost at least half as much in a second run: one that falls now and then does not count."""
    second = {(figure.host, figure.subject, figure.metric): figure for figure in again}
    still_slow = []
    for straggler in first:
        figure = second.get((straggler.host, straggler.subject, straggler.metric))
        if (
            figure
            and 1 - figure.value / (straggler.floor.bound if straggler.floor else usual[kind_of(figure)])
            >= straggler.loss / 2
        ):
            still_slow.append(replace(straggler, runs=2))
    return still_slow
