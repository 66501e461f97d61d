"""From conclusions to culprits with their evidence, and to doubts with what would decide them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil, exp, log

from nodetune.verify.find_slow.classify import losses
from nodetune.verify.find_slow.judge import QUICK, threshold
from nodetune.verify.find_slow.likelihood import BAD, DEEP, SMALLEST, level, middle, spread
from nodetune.verify.find_slow.model import (
    FAILED,
    GPU,
    LINK,
    NIC,
    NODE,
    PATH,
    RAIL,
    UPLINK,
    Classification,
    Culprit,
    Doubt,
    Fleet,
    Part,
    Run,
)

WELL, SLOW, UNKNOWN = "well", "slow", "unknown"
"""How a part is by itself."""

DECIDED = 6.0
"""Odds by a node's own figures that it loses as much by itself as with others: so it is slow, or (negative) well alone."""

MIN_GAIN = 0.3
"""A round that would move the odds by less decides nothing."""

MAX_MORE = 50


def culprits(fleet: Fleet, runs: Sequence[Run], solo: Sequence[Run], found: Classification) -> tuple[Culprit, ...]:
    """Return each named part with its evidence, the surest first."""
    alone = _Alone(solo, max((len(run.rails) for run in runs), default=1))
    whole = {part.at for part in found.named if part.kind == NODE}
    named = [(part, odds) for part, odds in found.named.items() if part.kind != RAIL or part.at not in whole]
    named.sort(key=lambda each: (-each[1], each[0].at))
    return tuple(_culprit(part, odds, fleet, runs, alone, found) for part, odds in named)


def _culprit(
    part: Part, odds: float, fleet: Fleet, runs: Sequence[Run], alone: _Alone, found: Classification
) -> Culprit:
    mine = _runs_of(part, fleet, runs, found)
    figures = found.worst if part.kind == RAIL else found.figures
    low = [number for number in mine if figures[number] < QUICK]
    others = {number: _other(part, fleet, runs[number]) for number in mine}
    seen = [others[number] for number in low]
    quick = [others[number] for number in mine if number not in low]
    if part.kind in (NODE, RAIL):  # what another slow node takes from them is not its own
        low = [number for number in low if others[number] not in found.nodes()] or low
    solo, loss = UNKNOWN, losses(figures[number] for number in low)
    fault = _fault([runs[number] for number in low], [figures[number] for number in low])
    if part.kind in (NODE, RAIL):
        part, solo = alone.placed(part, [runs[number] for number in low], loss, fault)
    return Culprit(
        part=part,
        fault=fault,
        loss=loss,
        seen_with=tuple(dict.fromkeys(seen)),
        quick_with=tuple(dict.fromkeys(each for each in quick if each not in seen)),
        runs=len(mine),
        solo=solo,
        odds=odds,
    )


def _runs_of(part: Part, fleet: Fleet, runs: Sequence[Run], found: Classification) -> list[int]:
    """Return the numbers of the runs that count for or against the part."""
    if part.kind in (NODE, RAIL):
        mine = [number for number, run in enumerate(runs) if part.at[0] in run.nodes]
        return [number for number in mine if runs[number].near or number in found.fair]

    def domains(run: Run) -> tuple[int, ...]:
        return tuple(fleet.domains[node] for node in run.nodes)

    wanted: dict[str, Callable[[Run], bool]] = {
        PATH: lambda run: run.nodes == part.at,
        LINK: lambda run: not run.near and domains(run) == part.at,
        UPLINK: lambda run: run.loaded and part.at[0] in domains(run),
    }
    return [number for number, run in enumerate(runs) if wanted[part.kind](run)]


def _other(part: Part, fleet: Fleet, run: Run) -> int:
    """Return the other end of a run: a node; of an uplink a domain."""
    ends = [fleet.domains[node] for node in run.nodes] if part.kind == UPLINK else list(run.nodes)
    return next((end for end in ends if end != part.at[0]), ends[-1])


def _fault(low: Sequence[Run], figures: Sequence[float]) -> str:
    """Return what broke most of the runs; empty if they were slow."""
    broken = [run.fault or FAILED for run, figure in zip(low, figures, strict=True) if figure < BAD / 2]
    return Counter(broken).most_common(1)[0][0] if 2 * len(broken) > len(low) else ""


class _Alone:
    """Each node's figures by itself, one a GPU."""

    def __init__(self, solo: Sequence[Run], rails: int) -> None:
        self._count = rails
        self._rails = {run.nodes[0]: run.rails for run in solo}
        middles = [middle(each) for each in self._rails.values()]
        self._level = level(middles)
        self._noise = spread(each - self._level for each in middles)
        apart = [rail - middle(each) for each in self._rails.values() for rail in each if rail > BAD]
        usual = level(apart)
        self._apart = spread(each - usual for each in apart)

    def placed(self, part: Part, low: Sequence[Run], loss: float, fault: str) -> tuple[Part, str]:
        """Return a node, its GPU or its NIC, and how it is by itself."""
        (node,) = part.at
        own = self._rails.get(node, ())
        if part.kind == NODE:
            solo = _said(middle(own) - self._level, loss, self._noise) if own else UNKNOWN
            is_nic = self._count == 1 and solo == WELL and not fault
            return (Part(NIC, part.at, 0) if is_nic else part), solo
        rail = Counter(run.rails.index(min(run.rails)) for run in low).most_common(1)[0][0]
        if len(own) != self._count:
            return Part(RAIL, part.at, rail), UNKNOWN
        solo = _said(own[rail] - middle(own), loss, self._apart)
        return Part({WELL: NIC, SLOW: GPU, UNKNOWN: RAIL}[solo], part.at, rail), solo


def _said(figure: float, loss: float, noise: float) -> str:
    """Compare a figure alone with two guesses: it loses as much as in the runs with others, or nothing."""
    short = -log(max(1 - loss, exp(-1)))
    odds = -short * (2 * max(figure, -1.0) + short) / (2 * noise**2)
    return SLOW if odds >= DECIDED else WELL if odds <= -DECIDED else UNKNOWN


def doubts(fleet: Fleet, runs: Sequence[Run], found: Classification) -> tuple[Doubt, ...]:
    """Return what is not decided: each group of parts that the same low runs speak against."""
    left = dict(found.doubts)
    result = []
    for part in sorted(left, key=lambda each: (each.kind != UPLINK, -left[each])):
        if part not in left or (part.kind == NODE and left[part] <= 0):
            continue
        between = _between(part, runs, found, left)
        for each in between:
            left.pop(each, None)
        numbers = _runs_of(part, fleet, runs, found)
        figures = found.figures
        low = [figures[number] for number in numbers if figures[number] < QUICK]
        if not low:
            figures = found.worst or found.figures
            low = [figures[number] for number in numbers if figures[number] < QUICK]
        loss = losses(low)
        missing = threshold(2 * len(fleet.nodes), -loss) - found.doubts[part]
        result.append(Doubt(tuple(between), loss, _more(missing, loss, found)))
    return tuple(result)


def _between(part: Part, runs: Sequence[Run], found: Classification, left: Iterable[Part]) -> list[Part]:
    """Return the part, and all others that could explain its low runs. `left`: the parts in doubt that no other group has."""
    if part.kind == PATH:
        return [part, *(Part(NODE, (end,)) for end in part.at if end not in found.proven)]
    if part.kind == UPLINK:
        return [part, *(each for each in left if each.kind == LINK and part.at[0] in each.at)]
    if part.kind != NODE:
        return [part]
    (node,) = part.at
    low = [
        run.nodes
        for number, run in enumerate(runs)
        if run.near and node in run.nodes and min(_both(number, found)) < QUICK
    ]
    partners = dict.fromkeys(end for nodes in low for end in nodes if end != node)
    others = [Part(NODE, (end,)) for end in partners if Part(NODE, (end,)) in found.doubts]
    paths = [Part(PATH, nodes) for nodes in dict.fromkeys(low)] if len(partners) == 1 else []
    return [part, *others, *paths]


def _both(number: int, found: Classification) -> tuple[float, float]:
    return found.figures[number], found.worst[number] if found.worst else 0.0


def _more(missing: float, loss: float, found: Classification) -> int:
    """Return how many more rounds would bring the odds to the threshold, if its runs go on like this. 0: none would."""
    shallow = max(loss, SMALLEST)
    count, every, _ = found.falls
    often = log((4 + every) / (1 + count)) if loss < -DEEP else log(100 + every)
    gain = min(often, 0.5 * (shallow / max(found.noise, 1e-6)) ** 2)
    rounds = ceil(max(missing, 1.0) / gain) if gain >= MIN_GAIN else 0
    return rounds if rounds <= MAX_MORE else 0
