"""From conclusions to culprits with their evidence, and to doubts with what would decide them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil, exp, log

from nodetune.statistics.likelihood import BAD, level, middle, spread
from nodetune.statistics.thresholds import ALONE_ODDS, DEEP_FALL, MIN_ODDS_GAIN, QUICK, SMALLEST_LOSS
from nodetune.verify.find_slow.end_analysis import threshold
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
    GroupRun,
    Part,
)

WELL, SLOW, UNKNOWN = "well", "slow", "unknown"
"""How a part is by itself."""


MAX_MORE = 50


def culprits(
    fleet: Fleet, runs: Sequence[GroupRun], solo: Sequence[GroupRun], classification: Classification
) -> tuple[Culprit, ...]:
    """Return each named part with its evidence, the surest first."""
    solo_figures = _SoloFigures(solo, max((len(run.rails) for run in runs), default=1))
    slow_nodes = {part.at for part in classification.named if part.kind == NODE}
    named = [
        (part, odds) for part, odds in classification.named.items() if part.kind != RAIL or part.at not in slow_nodes
    ]
    named.sort(key=lambda item: (-item[1], item[0].at))
    return tuple(_culprit(part, odds, fleet, runs, solo_figures, classification) for part, odds in named)


def _culprit(
    part: Part,
    odds: float,
    fleet: Fleet,
    runs: Sequence[GroupRun],
    solo_figures: _SoloFigures,
    classification: Classification,
) -> Culprit:
    numbers = _runs_of(part, fleet, runs, classification)
    figures = classification.worst_rails if part.kind == RAIL else classification.figures
    low = [number for number in numbers if figures[number] < QUICK]
    others = {number: _other(part, fleet, runs[number]) for number in numbers}
    slow_partners = [others[number] for number in low]
    fast_partners = [others[number] for number in numbers if number not in low]
    if part.kind in (NODE, RAIL):  # what another slow node takes from them is not its own
        low = [number for number in low if others[number] not in classification.named_nodes] or low
    solo, loss = UNKNOWN, _loss(figures[number] for number in low)
    fault = _fault([runs[number] for number in low], [figures[number] for number in low])
    if part.kind in (NODE, RAIL):
        part, solo = solo_figures.locate(part, [runs[number] for number in low], loss, fault)
    return Culprit(
        part=part,
        fault=fault,
        loss=loss,
        slow_with=tuple(dict.fromkeys(slow_partners)),
        fast_with=tuple(dict.fromkeys(partner for partner in fast_partners if partner not in slow_partners)),
        runs=len(numbers),
        solo=solo,
        odds=odds,
    )


def _runs_of(part: Part, fleet: Fleet, runs: Sequence[GroupRun], classification: Classification) -> list[int]:
    """Return the numbers of the runs that count for or against the part."""
    if part.kind in (NODE, RAIL):
        numbers = [number for number, run in enumerate(runs) if part.at[0] in run.nodes]
        return [number for number in numbers if runs[number].near or number in classification.far_runs]

    def domains(run: GroupRun) -> tuple[int, ...]:
        return tuple(fleet.domains[node] for node in run.nodes)

    counts: dict[str, Callable[[GroupRun], bool]] = {
        PATH: lambda run: run.nodes == part.at,
        LINK: lambda run: not run.near and domains(run) == part.at,
        UPLINK: lambda run: run.loaded and part.at[0] in domains(run),
    }
    return [number for number, run in enumerate(runs) if counts[part.kind](run)]


def _other(part: Part, fleet: Fleet, run: GroupRun) -> int:
    """Return the other end of a run: a node; of an uplink a domain."""
    ends = [fleet.domains[node] for node in run.nodes] if part.kind == UPLINK else list(run.nodes)
    return next((end for end in ends if end != part.at[0]), ends[-1])


def _fault(low: Sequence[GroupRun], figures: Sequence[float]) -> str:
    """Return what broke most of the runs; empty if they were slow."""
    broken = [run.fault or FAILED for run, figure in zip(low, figures, strict=True) if figure < BAD / 2]
    return Counter(broken).most_common(1)[0][0] if 2 * len(broken) > len(low) else ""


class _SoloFigures:
    """Each node's figures by itself, one a GPU."""

    def __init__(self, solo: Sequence[GroupRun], rails: int) -> None:
        self._count = rails
        self._rails = {run.nodes[0]: run.rails for run in solo}
        middles = [middle(rails) for rails in self._rails.values()]
        self._level = level(middles)
        self._noise = spread(figure - self._level for figure in middles)
        deviations = [rail - middle(rails) for rails in self._rails.values() for rail in rails if rail > BAD]
        usual = level(deviations)
        self._rail_noise = spread(deviation - usual for deviation in deviations)

    def locate(self, part: Part, low: Sequence[GroupRun], loss: float, fault: str) -> tuple[Part, str]:
        """Return a node, its GPU or its NIC, and how it is by itself."""
        (node,) = part.at
        own = self._rails.get(node, ())
        if part.kind == NODE:
            solo = _solo_state(middle(own) - self._level, loss, self._noise) if own else UNKNOWN
            is_nic = self._count == 1 and solo == WELL and not fault
            return (Part(NIC, part.at, 0) if is_nic else part), solo
        rail = Counter(run.rails.index(min(run.rails)) for run in low).most_common(1)[0][0]
        if len(own) != self._count:
            return Part(RAIL, part.at, rail), UNKNOWN
        solo = _solo_state(own[rail] - middle(own), loss, self._rail_noise)
        return Part({WELL: NIC, SLOW: GPU, UNKNOWN: RAIL}[solo], part.at, rail), solo


def _solo_state(figure: float, loss: float, noise: float) -> str:
    """Compare a figure alone with two guesses: it loses as much as in the runs with others, or nothing."""
    short = -log(max(1 - loss, exp(-1)))
    odds = -short * (2 * max(figure, -1.0) + short) / (2 * noise**2)
    return SLOW if odds >= ALONE_ODDS else WELL if odds <= -ALONE_ODDS else UNKNOWN


def doubts(fleet: Fleet, runs: Sequence[GroupRun], classification: Classification) -> tuple[Doubt, ...]:
    """Return what is not decided: each group of parts that the same low runs speak against."""
    open_doubts = dict(classification.doubts)
    result = []
    for part in sorted(open_doubts, key=lambda candidate: (candidate.kind != UPLINK, -open_doubts[candidate])):
        if part not in open_doubts or (part.kind == NODE and open_doubts[part] <= 0):
            continue
        candidates = _candidates(part, runs, classification, open_doubts)
        for candidate in candidates:
            open_doubts.pop(candidate, None)
        numbers = _runs_of(part, fleet, runs, classification)
        figures = classification.figures
        low = [figures[number] for number in numbers if figures[number] < QUICK]
        if not low:
            figures = classification.worst_rails or classification.figures
            low = [figures[number] for number in numbers if figures[number] < QUICK]
        loss = _loss(low)
        more_rounds = _more_rounds(classification.doubts[part], loss, 2 * len(fleet.nodes), classification)
        result.append(Doubt(tuple(candidates), loss, more_rounds))
    return tuple(result)


def _candidates(
    part: Part, runs: Sequence[GroupRun], classification: Classification, open_doubts: Iterable[Part]
) -> list[Part]:
    """Return the part, and all others that could explain its low runs. `open_doubts`: the parts in doubt that no other group has."""
    if part.kind == PATH:
        return [part, *(Part(NODE, (end,)) for end in part.at if end not in classification.proven)]
    if part.kind == UPLINK:
        return [part, *(link for link in open_doubts if link.kind == LINK and part.at[0] in link.at)]
    if part.kind != NODE:
        return [part]
    (node,) = part.at
    low = [
        run.nodes
        for number, run in enumerate(runs)
        if run.near and node in run.nodes and min(_both(number, classification)) < QUICK
    ]
    partners = dict.fromkeys(end for nodes in low for end in nodes if end != node)
    others = [Part(NODE, (end,)) for end in partners if Part(NODE, (end,)) in classification.doubts]
    paths = [Part(PATH, nodes) for nodes in dict.fromkeys(low)] if len(partners) == 1 else []
    return [part, *others, *paths]


def _both(number: int, classification: Classification) -> tuple[float, float]:
    return classification.figures[number], classification.worst_rails[number] if classification.worst_rails else 0.0


def _more_rounds(odds: float, loss: float, tests: int, classification: Classification) -> int:
    """Return how many more rounds would bring the odds to the threshold, if its runs go on like this. 0: none would."""
    shallow = max(loss, SMALLEST_LOSS)
    count, every, _ = classification.falls
    often = log((4 + every) / (1 + count)) if loss < -DEEP_FALL else log(100 + every)
    gain = min(often, 0.5 * (shallow / max(classification.noise, 1e-6)) ** 2)
    rounds = ceil(max(threshold(tests, -loss) - odds, 1.0) / gain) if gain >= MIN_ODDS_GAIN else 0
    return rounds if rounds <= MAX_MORE else 0


def _loss(figures: Iterable[float]) -> float:
    """Return the fraction that figures are short of their level, by their middle one."""
    known = sorted(figures)
    return 1 - exp(known[(len(known) - 1) // 2]) if known else 0.0
