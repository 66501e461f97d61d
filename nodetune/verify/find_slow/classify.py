"""Classify nodes, uplinks, links and paths by all runs so far: slow, well, or in doubt. Pure.

All figures are read twice: as the whole run's (the middle of its rails), and as its worst rail's below that.
"""

from collections.abc import Callable, Mapping, Sequence

from nodetune.statistics import thresholds
from nodetune.statistics.likelihood import BAD, Chances, evidence, level, middle, spread, unsure
from nodetune.verify.find_slow.end_analysis import EndAnalysis, EndOdds, Pair, threshold
from nodetune.verify.find_slow.model import LINK, NODE, PATH, RAIL, UPLINK, Classification, Fleet, GroupRun, Part

Ends = tuple[int, ...]


def classify(
    fleet: Fleet, solo: Sequence[GroupRun], runs: Sequence[GroupRun], hidden_drift: float = 0.0
) -> Classification:
    """Classify all parts by the runs of pairs, and by those of each node alone (`solo`)."""
    count = len(fleet.nodes)
    near = [
        {node for run in runs if run.near and end in run.nodes for node in run.nodes} - {end} for end in range(count)
    ]
    proven = {end for end in range(count) if len(near[end]) > 2}
    classification = Classification([-99.0] * count, set(range(count)), proven, hidden_drift=hidden_drift)
    middles = [middle(run.rails) for run in runs]
    worst = [min(run.rails) - center if center > BAD else 0.0 for run, center in zip(runs, middles, strict=True)]
    rails = {run.nodes[0]: run.rails for run in solo}
    odds_alone = _odds_alone([rails.get(node, ()) for node in range(count)])
    for figures, solo_odds, is_whole in ((middles, odds_alone[0], True), (worst, odds_alone[1], False)):
        if is_whole or any(len(run.rails) > 1 for run in runs):
            _Classifier(fleet, runs, figures, is_whole, classification).classify(solo_odds)
    _join_links(max(fleet.domains) + 1, classification)
    for part in [*classification.doubts]:
        if part in classification.named:
            del classification.doubts[part]
    classification.named_nodes = {part.at[0] for part in classification.named if part.kind in (NODE, RAIL)}
    classification.clear -= classification.named_nodes
    ends = {end for part in classification.doubts if part.kind == PATH for end in part.at} - classification.proven
    for node, odds in enumerate(classification.odds):
        if (odds > thresholds.DOUBT_ODDS or node in ends) and node not in classification.named_nodes:
            classification.doubts[Part(NODE, (node,))] = odds
    return classification


def _join_links(count: int, classification: Classification) -> None:
    """Leave open whether most links of a domain are slow, or its uplink is. `count`: the number of domains."""
    links = [part for part in classification.named if part.kind == LINK]
    for domain in range(count):
        domain_links = [part for part in links if domain in part.at]
        if len(domain_links) > 1 and 2 * len(domain_links) >= count - 1:
            classification.doubts[Part(UPLINK, (domain,))] = max(classification.doubts[part] for part in domain_links)
            for part in domain_links:
                classification.named.pop(part, None)


class _Classifier:
    """One of the two readings. `figures` are those of the runs, as logarithms. A loss of the whole run masks one of a rail."""

    def __init__(
        self,
        fleet: Fleet,
        runs: Sequence[GroupRun],
        figures: Sequence[float],
        is_whole: bool,
        classification: Classification,
    ) -> None:
        self._fleet, self._runs, self._is_whole, self._classification = fleet, runs, is_whole, classification
        self._informative = (
            [True] * len(runs) if is_whole else [figure >= thresholds.DEEP_FALL for figure in classification.figures]
        )
        self._few_domains = max(fleet.domains) + 1 <= thresholds.FEW_DOMAINS
        self._noise_factor = 1.0 if is_whole else thresholds.WORST_RAIL_NOISE
        self._tests = 2 * len(fleet.nodes)
        self._level = self._levels(figures)
        self._figures = [figure - self._level[self._like(run)] for run, figure in zip(runs, figures, strict=True)]

    @staticmethod
    def _like(run: GroupRun) -> str:
        return "near" if run.near else "loaded" if run.loaded else "far"

    def _levels(self, figures: Sequence[float]) -> dict[str, float]:
        """Compare like with like: near, across, across under load."""

        def of(selected: Callable[[GroupRun], bool]) -> float:
            of_runs = zip(self._runs, figures, self._informative, strict=True)
            return level(figure for run, figure, informative in of_runs if informative and selected(run))

        near = of(lambda run: run.near and run.ring)
        if self._few_domains:
            return {"near": near, "far": near, "loaded": near}
        far = of(lambda run: not run.near and run.ring)
        return {"near": near, "far": min(near, far), "loaded": of(lambda run: run.loaded)}

    def _uncertainty(self, noise: float, like: str) -> float:
        """Return the least loss to name a part for: a level may be off by as much, or the fleet may have moved."""
        if like == "loaded" and self._few_domains:  # their level is of earlier rounds, and no witness runs with them
            return unsure(noise, 1)
        of_level = [run for run in self._runs if self._like(run) == like and (run.ring or run.loaded)]
        return max(self._classification.hidden_drift, unsure(noise, sum(max(run.rails) > BAD for run in of_level)))

    def classify(self, solo_odds: Sequence[float]) -> None:
        """Add what this reading says to the classification."""
        analysis = EndAnalysis(
            len(self._fleet.nodes), self._pairs([run.near for run in self._runs]), solo_odds, self._noise_factor
        )
        node_odds = analysis.estimate()
        self._min_loss = self._uncertainty(analysis.noise, "near")
        self._store(node_odds)
        fair = [
            informative and all(node_odds.odds[node] <= 0 for node in run.nodes)
            for run, informative in zip(self._runs, self._informative, strict=True)
        ]
        domains = self._uplinks(fair)
        healthy_links = self._links(fair, domains, node_odds)
        self._paths(fair, healthy_links, node_odds)
        quiet = [
            self._is_quiet(run, domains) and Part(LINK, self._ends(run)) not in self._classification.doubts
            for run in self._runs
        ]
        far = self._pairs(quiet)
        self._classification.far_runs |= {number for number, counts in enumerate(quiet) if counts}
        for node, odds in analysis.slow_ends(self._tests, far, self._min_loss).items():
            self._classification.named[Part(NODE if self._is_whole else RAIL, (node,))] = odds

    def _store(self, node_odds: EndOdds) -> None:
        self._classification.odds = [max(*both) for both in zip(self._classification.odds, node_odds.odds, strict=True)]
        self._classification.clear &= {
            node for node, odds in enumerate(node_odds.odds) if odds <= thresholds.CLEAR_ODDS
        }
        self._classification.proven &= {
            node for node, odds in enumerate(node_odds.odds) if odds <= thresholds.PROVEN_ODDS
        }
        if self._is_whole:
            self._classification.level = self._level["near"]
            self._classification.noise, self._classification.falls = node_odds.noise, node_odds.falls
            self._classification.figures = self._figures
        else:
            self._classification.worst_rails = self._figures

    def _ends(self, run: GroupRun) -> tuple[int, ...]:
        return tuple(self._fleet.domains[node] for node in run.nodes)

    def _is_quiet(self, run: GroupRun, domains: Sequence[float]) -> bool:
        """Return whether a run across says something about its link: no uplink is short. `domains`: their odds."""
        unloaded = not run.loaded or self._level["loaded"] > self._level["near"] - thresholds.SHORT_UPLINKS
        return not run.near and unloaded and all(domains[end] <= 0 for end in self._ends(run))

    def _pairs(self, selected: Sequence[bool]) -> list[Pair]:
        of_runs = zip(self._runs, self._figures, selected, self._informative, strict=True)
        return [
            (run.nodes[0], run.nodes[1], figure)
            for run, figure, counts, informative in of_runs
            if counts and informative
        ]

    def _uplinks(self, fair: Sequence[bool]) -> list[float]:
        """Judge domains like nodes, by runs under load between nodes that are well. Return their odds."""
        domain = self._fleet.domains
        count = max(domain) + 1
        loaded: list[Pair] = [
            (domain[run.nodes[0]], domain[run.nodes[1]], figure)
            for run, figure, healthy in zip(self._runs, self._figures, fair, strict=True)
            if run.loaded and healthy
        ]
        if not loaded:
            return [-99.0] * count
        analysis = EndAnalysis(count, loaded, noise_factor=self._noise_factor)
        odds = analysis.estimate().odds
        named = analysis.slow_ends(self._tests, min_loss=self._uncertainty(analysis.noise, "loaded"))
        self._classification.named |= {Part(UPLINK, (number,)): above for number, above in named.items()}
        self._classification.doubts |= {
            Part(UPLINK, (number,)): odds_of_end
            for number, odds_of_end in enumerate(odds)
            if odds_of_end > thresholds.DOUBT_ODDS and number not in named
        }
        return odds

    def _links(self, fair: Sequence[bool], domains: Sequence[float], node_odds: EndOdds) -> set[Ends]:
        """Judge links by runs between nodes and domains that are well. Return those that are well."""
        across: dict[Ends, list[float]] = {}
        low: dict[Ends, set[Ends]] = {}
        hidden = -self._uncertainty(node_odds.noise, "loaded")
        for run, figure, healthy in zip(self._runs, self._figures, fair, strict=True):
            is_hidden = run.loaded and self._few_domains and hidden < figure < thresholds.QUICK
            if healthy and self._is_quiet(run, domains) and not is_hidden:
                across.setdefault(self._ends(run), []).append(figure)
                low.setdefault(self._ends(run), set()).update([run.nodes] if figure < thresholds.QUICK else [])
        several = {ends for ends, pairs in low.items() if len(pairs) > 1}  # of one pair alone, it is that path
        sure = several if self._is_whole else {ends for ends in several if middle(across[ends]) < thresholds.DEEP_FALL}
        return self._judge(LINK, across, sure, node_odds)

    def _paths(self, fair: Sequence[bool], links: set[Ends], node_odds: EndOdds) -> None:
        """Judge paths of neighbours in the ring, where both ends are good with others and so is the link."""
        second, last = self._second_best(), len(self._fleet.nodes) - 1
        paths: dict[Ends, list[float]] = {}
        for run, figure, healthy in zip(self._runs, self._figures, fair, strict=True):
            a, b = run.nodes
            if healthy and b - a in (1, last) and (run.near or self._ends(run) in links):
                paths.setdefault(run.nodes, []).append(figure)
        partners = self._deep_partners(node_odds)
        sure = {
            ends
            for ends, figures in paths.items()  # a deep fall needs less of its ends; a shallow one of a rail is its end's
            if (middle(figures) < thresholds.DEEP_FALL and min(second[end] for end in ends) > -thresholds.SMALLEST_LOSS)
            or (self._is_whole and set(ends) <= self._classification.proven)
            if all(partners[end] <= set(ends) for end in ends)
        }
        self._judge(PATH, paths, sure, node_odds)

    def _deep_partners(self, node_odds: EndOdds) -> list[set[int]]:
        """Return the near partners that are well with which each node fell deep: with several, it may be slow now and then."""
        partners: list[set[int]] = [set() for _ in self._fleet.nodes]
        for run, figure in zip(self._runs, self._figures, strict=True):
            for node, other in (run.nodes, run.nodes[::-1]):
                if run.near and figure < thresholds.DEEP_FALL and node_odds.odds[other] <= 0:
                    partners[node].add(other)
        return partners

    def _second_best(self) -> list[float]:
        """Return the second best figure of each node with near partners."""
        figures: list[list[float]] = [[BAD, BAD] for _ in self._fleet.nodes]
        for run, figure, informative in zip(self._runs, self._figures, self._informative, strict=True):
            if run.near and informative:
                for node in run.nodes:
                    figures[node].append(figure)
        return [sorted(of_node)[-2] for of_node in figures]

    def _judge(self, kind: str, figures: Mapping[Ends, list[float]], sure: set[Ends], node_odds: EndOdds) -> set[Ends]:
        """Name parts between ends that are surely well, by their runs. Return those that are well."""
        healthy = set()
        for ends, of_ends in figures.items():
            odds, limit = evidence(of_ends, node_odds.noise, node_odds.chances), threshold(self._tests, middle(of_ends))
            part = Part(kind, ends)
            if len(of_ends) >= 3 and ends in sure and odds >= limit and -middle(of_ends) >= self._min_loss:
                self._classification.named[part] = odds - limit
            if odds > 0:
                self._classification.doubts[part] = odds
            else:
                healthy.add(ends)
        return healthy


def _odds_alone(figures: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the odds of each node by its figures alone, for both readings: at least 0, as a network may still be slow."""
    middles = [middle(rails) if rails else 0.0 for rails in figures]
    worst = [
        min(rails) - center if rails and center > BAD else 0.0 for rails, center in zip(figures, middles, strict=True)
    ]
    return _solo_odds(middles, figures), _solo_odds(worst, figures)


def _solo_odds(values: Sequence[float], figures: Sequence[Sequence[float]]) -> list[float]:
    known = [value for value, rails in zip(values, figures, strict=True) if rails]
    usual = level(known)
    noise = spread(value - usual for value in known)
    return [
        max(0.0, evidence([value - usual], noise, Chances())) if rails else 0.0
        for value, rails in zip(values, figures, strict=True)
    ]
