"""Read all runs so far: which nodes, uplinks, links and paths are slow, well, or in doubt. Pure.

All figures are read twice: as the whole run's (the middle of its rails), and as its worst rail's below that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp

from nodetune.verify.find_slow.judge import CLEAR, QUICK, Judge, Judgement, Pair, threshold
from nodetune.verify.find_slow.likelihood import BAD, DEEP, SMALLEST, Chances, evidence, level, middle, spread, unsure
from nodetune.verify.find_slow.model import LINK, NODE, PATH, RAIL, UPLINK, Classification, Fleet, Part, Run

Ends = tuple[int, ...]

DOUBT = -1.0
"""A node whose odds are above this is tried again."""

PROVEN = 2 * CLEAR
"""A path is blamed for a small loss only if the odds of its ends are at or below this."""

MIN_OF_MANY = 1.25
"""Factor for the noise of the worst rail: the least of eight has a tail."""

FEW_DOMAINS = 4
"""With no more domains, runs across have no level of their own: one slow domain would be in most of them."""

SHORT_UPLINKS = 0.05
"""Runs under load that are this much below near ones: uplinks are oversubscribed, and load hides a slow link."""


def classify(fleet: Fleet, solo: Sequence[Run], runs: Sequence[Run], unseen: float = 0.0) -> Classification:
    """Classify all parts by the runs of pairs, and by those of each node alone (`solo`)."""
    count = len(fleet.nodes)
    near = [
        {node for run in runs if run.near and end in run.nodes for node in run.nodes} - {end} for end in range(count)
    ]
    proven = {end for end in range(count) if len(near[end]) > 2}
    found = Classification([-99.0] * count, set(range(count)), proven, unseen=unseen)
    middles = [middle(run.rails) for run in runs]
    worst = [min(run.rails) - whole if whole > BAD else 0.0 for run, whole in zip(runs, middles, strict=True)]
    rails = {run.nodes[0]: run.rails for run in solo}
    odds_alone = _odds_alone([rails.get(node, ()) for node in range(count)])
    for figures, own, whole in ((middles, odds_alone[0], True), (worst, odds_alone[1], False)):
        if whole or any(len(run.rails) > 1 for run in runs):
            _Reading(fleet, runs, figures, whole, found).read(own)
    _join_links(max(fleet.domains) + 1, found)
    for part in [*found.doubts]:
        if part in found.named:
            del found.doubts[part]
    found.clear -= found.nodes()
    ends = {end for part in found.doubts if part.kind == PATH for end in part.at} - found.proven
    for node, odds in enumerate(found.odds):
        if (odds > DOUBT or node in ends) and node not in found.nodes():
            found.doubts[Part(NODE, (node,))] = odds
    return found


def _join_links(count: int, found: Classification) -> None:
    """Leave open whether most links of a domain are slow, or its uplink is. `count`: the number of domains."""
    links = [part for part in found.named if part.kind == LINK]
    for domain in range(count):
        its = [part for part in links if domain in part.at]
        if len(its) > 1 and 2 * len(its) >= count - 1:
            found.doubts[Part(UPLINK, (domain,))] = max(found.doubts[part] for part in its)
            for part in its:
                found.named.pop(part, None)


class _Reading:
    """One of the two readings. `figures` are those of the runs, as logarithms. A run that is short as a whole hides its rails."""

    def __init__(
        self, fleet: Fleet, runs: Sequence[Run], figures: Sequence[float], whole: bool, found: Classification
    ) -> None:
        self._fleet, self._runs, self._whole, self._found = fleet, runs, whole, found
        self._shows = [True] * len(runs) if whole else [figure >= DEEP for figure in found.figures]
        self._few_domains = max(fleet.domains) + 1 <= FEW_DOMAINS
        self._wider = 1.0 if whole else MIN_OF_MANY
        self._tests = 2 * len(fleet.nodes)
        self._level = self._levels(figures)
        self._figures = [each - self._level[self._like(run)] for run, each in zip(runs, figures, strict=True)]

    @staticmethod
    def _like(run: Run) -> str:
        return "near" if run.near else "loaded" if run.loaded else "far"

    def _levels(self, figures: Sequence[float]) -> dict[str, float]:
        """Compare like with like: near, across, across under load."""

        def of(wanted: Callable[[Run], bool]) -> float:
            of_runs = zip(self._runs, figures, self._shows, strict=True)
            return level(figure for run, figure, shows in of_runs if shows and wanted(run))

        near = of(lambda run: run.near and run.ring)
        if self._few_domains:
            return {"near": near, "far": near, "loaded": near}
        far = of(lambda run: not run.near and run.ring)
        return {"near": near, "far": min(near, far), "loaded": of(lambda run: run.loaded)}

    def _unsure(self, noise: float, like: str) -> float:
        """Return the least loss to name a part for: a level may be off by as much, or the fleet may have moved."""
        if like == "loaded" and self._few_domains:  # their level is of earlier rounds, and no witness runs with them
            return unsure(noise, 1)
        of_level = [run for run in self._runs if self._like(run) == like and (run.ring or run.loaded)]
        return max(self._found.unseen, unsure(noise, sum(max(run.rails) > BAD for run in of_level)))

    def read(self, own: Sequence[float]) -> None:
        """Add what this reading says to the conclusions."""
        judge = Judge(len(self._fleet.nodes), self._pairs([run.near for run in self._runs]), own, self._wider)
        judged = judge.verdict()
        self._least = self._unsure(judge.noise, "near")
        self._keep(judged)
        fair = [
            shows and all(judged.odds[node] <= 0 for node in run.nodes)
            for run, shows in zip(self._runs, self._shows, strict=True)
        ]
        domains = self._uplinks(fair)
        well = self._links(fair, domains, judged)
        self._paths(fair, well, judged)
        quiet = [
            self._is_quiet(run, domains) and Part(LINK, self._ends(run)) not in self._found.doubts for run in self._runs
        ]
        far = self._pairs(quiet)
        self._found.fair |= {number for number, counts in enumerate(quiet) if counts}
        for node, odds in judge.named(self._tests, far, self._least).items():
            self._found.named[Part(NODE if self._whole else RAIL, (node,))] = odds

    def _keep(self, judged: Judgement) -> None:
        self._found.odds = [max(*both) for both in zip(self._found.odds, judged.odds, strict=True)]
        self._found.clear &= {node for node, odds in enumerate(judged.odds) if odds <= CLEAR}
        self._found.proven &= {node for node, odds in enumerate(judged.odds) if odds <= PROVEN}
        if self._whole:
            self._found.level, self._found.noise, self._found.falls = self._level["near"], judged.noise, judged.falls
            self._found.figures = self._figures
        else:
            self._found.worst = self._figures

    def _ends(self, run: Run) -> tuple[int, ...]:
        return tuple(self._fleet.domains[node] for node in run.nodes)

    def _is_quiet(self, run: Run, domains: Sequence[float]) -> bool:
        """Return whether a run across says something about its link: no uplink is short. `domains`: their odds."""
        unloaded = not run.loaded or self._level["loaded"] > self._level["near"] - SHORT_UPLINKS
        return not run.near and unloaded and all(domains[end] <= 0 for end in self._ends(run))

    def _pairs(self, wanted: Sequence[bool]) -> list[Pair]:
        of_runs = zip(self._runs, self._figures, wanted, self._shows, strict=True)
        return [(run.nodes[0], run.nodes[1], figure) for run, figure, counts, shows in of_runs if counts and shows]

    def _uplinks(self, fair: Sequence[bool]) -> list[float]:
        """Judge domains like nodes, by runs under load between nodes that are well. Return their odds."""
        domain = self._fleet.domains
        count = max(domain) + 1
        loaded: list[Pair] = [
            (domain[run.nodes[0]], domain[run.nodes[1]], figure)
            for run, figure, well in zip(self._runs, self._figures, fair, strict=True)
            if run.loaded and well
        ]
        if not loaded:
            return [-99.0] * count
        judge = Judge(count, loaded, wider=self._wider)
        odds = judge.verdict().odds
        named = judge.named(self._tests, least=self._unsure(judge.noise, "loaded"))
        self._found.named |= {Part(UPLINK, (number,)): above for number, above in named.items()}
        self._found.doubts |= {
            Part(UPLINK, (number,)): each for number, each in enumerate(odds) if each > DOUBT and number not in named
        }
        return odds

    def _links(self, fair: Sequence[bool], domains: Sequence[float], judged: Judgement) -> set[Ends]:
        """Judge links by runs between nodes and domains that are well. Return those that are well."""
        across: dict[Ends, list[float]] = {}
        low: dict[Ends, set[Ends]] = {}
        hidden = -self._unsure(judged.noise, "loaded")
        for run, figure, well in zip(self._runs, self._figures, fair, strict=True):
            open_ = run.loaded and self._few_domains and hidden < figure < QUICK
            if well and self._is_quiet(run, domains) and not open_:
                across.setdefault(self._ends(run), []).append(figure)
                low.setdefault(self._ends(run), set()).update([run.nodes] if figure < QUICK else [])
        several = {ends for ends, pairs in low.items() if len(pairs) > 1}  # of one pair alone, it is that path
        sure = several if self._whole else {ends for ends in several if middle(across[ends]) < DEEP}
        return self._blame(LINK, across, sure, judged)

    def _paths(self, fair: Sequence[bool], links: set[Ends], judged: Judgement) -> None:
        """Judge paths of neighbours in the ring, where both ends are good with others and so is the link."""
        second, last = self._second_best(), len(self._fleet.nodes) - 1
        paths: dict[Ends, list[float]] = {}
        for run, figure, well in zip(self._runs, self._figures, fair, strict=True):
            a, b = run.nodes
            if well and b - a in (1, last) and (run.near or self._ends(run) in links):
                paths.setdefault(run.nodes, []).append(figure)
        fell = self._fell_with(judged)
        sure = {
            ends
            for ends, figures in paths.items()  # a deep fall needs less of its ends; a shallow one of a rail is its end's
            if (middle(figures) < DEEP and min(second[end] for end in ends) > -SMALLEST)
            or (self._whole and set(ends) <= self._found.proven)
            if all(fell[end] <= set(ends) for end in ends)
        }
        self._blame(PATH, paths, sure, judged)

    def _fell_with(self, judged: Judgement) -> list[set[int]]:
        """Return the near partners that are well with which each node fell deep: with several, it may be slow now and then."""
        fell: list[set[int]] = [set() for _ in self._fleet.nodes]
        for run, figure in zip(self._runs, self._figures, strict=True):
            for node, other in (run.nodes, run.nodes[::-1]):
                if run.near and figure < DEEP and judged.odds[other] <= 0:
                    fell[node].add(other)
        return fell

    def _second_best(self) -> list[float]:
        """Return the second best figure of each node with near partners."""
        met: list[list[float]] = [[BAD, BAD] for _ in self._fleet.nodes]
        for run, figure, shows in zip(self._runs, self._figures, self._shows, strict=True):
            if run.near and shows:
                for node in run.nodes:
                    met[node].append(figure)
        return [sorted(each)[-2] for each in met]

    def _blame(self, kind: str, figures: Mapping[Ends, list[float]], sure: set[Ends], judged: Judgement) -> set[Ends]:
        """Name parts between ends that are surely well, by their runs. Return those that are well."""
        good = set()
        for ends, met in figures.items():
            odds, bar = evidence(met, judged.noise, judged.chances), threshold(self._tests, middle(met))
            part = Part(kind, ends)
            if len(met) >= 3 and ends in sure and odds >= bar and -middle(met) >= self._least:
                self._found.named[part] = odds - bar
            if odds > 0:
                self._found.doubts[part] = odds
            else:
                good.add(ends)
        return good


def _odds_alone(figures: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the odds of each node by its figures alone, for both readings: at least 0, as a network may still be slow."""
    middles = [middle(each) if each else 0.0 for each in figures]
    worst = [min(each) - whole if each and whole > BAD else 0.0 for each, whole in zip(figures, middles, strict=True)]
    return _alone(middles, figures), _alone(worst, figures)


def _alone(values: Sequence[float], figures: Sequence[Sequence[float]]) -> list[float]:
    known = [value for value, each in zip(values, figures, strict=True) if each]
    usual = level(known)
    noise = spread(value - usual for value in known)
    return [
        max(0.0, evidence([value - usual], noise, Chances())) if each else 0.0
        for value, each in zip(values, figures, strict=True)
    ]


def losses(figures: Iterable[float]) -> float:
    """Return the fraction that figures are short of their level, by their middle one."""
    known = sorted(figures)
    return 1 - exp(known[(len(known) - 1) // 2]) if known else 0.0
