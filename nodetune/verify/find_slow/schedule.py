"""Which round a search runs next. Pure.

Every node alone; the ring; the domains' tournament; repeats of what is in doubt; at last the others as one.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from nodetune.verify.find_slow.model import (
    JOINT,
    LINK,
    NODE,
    PAIRS,
    PATH,
    SOLO,
    UPLINK,
    Classification,
    Fleet,
    Part,
    Round,
)

Group = tuple[int, ...]

WITNESSES = 64
"""Good pairs that run along when something is repeated: they show whether the whole fleet became faster or slower."""


class Schedule:
    """Plans the rounds of one search, of which there are at most `max_rounds`."""

    def __init__(self, fleet: Fleet, max_rounds: int) -> None:
        self._fleet, self._max_rounds = fleet, max_rounds
        self._first = [Round(SOLO, tuple((node,) for node in range(len(fleet.nodes))))]
        self._first += [Round(PAIRS, tuple(pairs), ring=True) for pairs in ring(len(fleet.nodes))]
        if max(fleet.domains) >= 3:  # with fewer domains, the ring has shown every link
            self._first.append(Round(PAIRS, tuple(tournament(fleet, 0)), loaded=True))

    def first(self, done: int) -> Round | None:
        """Return the round after `done` others, if it is one of those that every search begins with."""
        return self._first[done] if done < len(self._first) else None

    def repeat(self, done: int, classification: Classification, run_counts: Counter[Group]) -> Round | None:
        """Return a round that tries again what is in doubt. None: nothing is, nothing can be tried, or the rounds are spent."""
        if not classification.doubts or done >= self._max_rounds - 1:
            return None
        turn = done - len(self._first) + 2
        pairs = RepeatPlan(self._fleet, classification, run_counts, turn).pairs()
        if any(part.kind == UPLINK for part in classification.doubts) and (
            turn % 2 or not pairs
        ):  # by turns, as it takes all nodes
            return Round(PAIRS, tuple(tournament(self._fleet, turn)), loaded=True)
        return Round(PAIRS, tuple(pairs)) if pairs else None

    def last(self, classification: Classification) -> Round | None:
        """Return the joint run of all nodes that no culprit is or reaches; None with fewer than two."""
        away = {part.at[0] for part in classification.named if part.kind in (UPLINK, LINK)}
        out = classification.named_nodes | {part.at[0] for part in classification.named if part.kind == PATH}
        rest = tuple(node for node, domain in enumerate(self._fleet.domains) if node not in out and domain not in away)
        return Round(JOINT, (rest,)) if len(rest) > 1 else None


def ring(count: int) -> list[list[Group]]:
    """Return the rounds in which each node runs with its neighbours in the ring: two, or three for an odd number."""
    edges = [(node, (node + 1) % count) for node in range(count)] if count > 2 else [(0, 1)][: count - 1]
    last = edges[-1:] if count % 2 and count > 2 else []
    rest = edges[: len(edges) - len(last)]
    return [[_sorted(*each) for each in turn] for turn in (rest[::2], rest[1::2], last) if turn]


def tournament(fleet: Fleet, day: int) -> list[Group]:
    """Pair node s of every domain with one of the domain that day `day` of a round robin gives: every link, under full load."""
    members: list[list[int]] = [[] for _ in range(max(fleet.domains) + 1)]
    for node, domain in enumerate(fleet.domains):
        members[domain].append(node)
    turns = len(members) - 1 + len(members) % 2
    pairs = []
    for slot in range(max(map(len, members))):
        circle = [0] + [1 + (place + slot + day) % turns for place in range(turns)]
        for one, other in zip(circle[: (turns + 1) // 2], reversed(circle), strict=False):
            if max(one, other) < len(members) and slot < min(len(members[one]), len(members[other])):
                pairs.append(_sorted(_player(members[one], one, slot, day), _player(members[other], other, slot, day)))
    return pairs


def _player(members: list[int], domain: int, slot: int, day: int) -> int:
    return members[(slot + day * domain) % len(members)]


def _sorted(one: int, other: int) -> Group:
    return (one, other) if one < other else (other, one)


class RepeatPlan:
    """The pairs of a round that tries again what is in doubt, each node in one pair at most."""

    def __init__(self, fleet: Fleet, classification: Classification, run_counts: Counter[Group], turn: int) -> None:
        self._fleet, self._classification, self._run_counts = fleet, classification, run_counts
        self._free = set(range(len(fleet.nodes)))
        self._pairs: list[Group] = []
        self._doubtful = {part.at[0] for part in classification.doubts if part.kind == NODE}
        self._plan(turn)

    def pairs(self) -> list[Group]:
        """Return the pairs; with witnesses, if there are any."""
        return [*self._pairs, *self._witnesses()] if self._pairs else []

    def _plan(self, turn: int) -> None:
        """Try a path by turns again, and each of its ends with another node."""
        for part in self._likeliest(PATH):
            if set(part.at) <= self._free and (turn % 2 == 0 or not set(part.at) & self._doubtful):
                self._take(*part.at)
        for node in sorted(self._doubtful, key=lambda node: -self._classification.odds[node]):
            if node in self._free:
                self._pair_with_clear(node)
        busy: set[int] = set()  # few flows at once: an uplink may be oversubscribed
        for part in self._likeliest(LINK):
            for _ in range(0 if set(part.at) & busy else 2):
                self._across(*part.at)
            busy |= set(part.at)

    def _likeliest(self, kind: str) -> list[Part]:
        """Return the parts of a kind that are in doubt, the most likely one first."""
        doubts = self._classification.doubts
        return sorted((part for part in doubts if part.kind == kind), key=lambda part: (-doubts[part], part.at))

    def _pair_with_clear(self, node: int) -> None:
        """Try a node with a good one of its domain, else with any of it."""
        same = self._in(self._fleet.domains[node])
        good = self._partner(node, lambda other: same(other) and other in self._classification.clear)
        other = self._partner(node, same) if good is None else good
        if other is not None:
            self._take(node, other)

    def _across(self, one: int, other: int) -> None:
        first, second = (
            lambda node, domain=domain: self._fleet.domains[node] == domain and node in self._classification.clear
            for domain in (one, other)
        )
        node = self._partner(-1, first)
        there = self._partner(node, second) if node is not None else None
        if node is not None and there is not None:
            self._take(node, there)

    def _in(self, domain: int) -> Callable[[int], bool]:
        return lambda node: self._fleet.domains[node] == domain

    def _partner(self, node: int, accepted: Callable[[int], bool]) -> int | None:
        """Return the free partner that it met least."""
        choice = [other for other in sorted(self._free) if other != node and accepted(other)]
        return min(choice, key=lambda other: self._run_counts[_sorted(node, other)], default=None)

    def _take(self, one: int, other: int) -> None:
        self._free -= {one, other}
        self._pairs.append(_sorted(one, other))

    def _witnesses(self) -> Iterator[Group]:
        """Yield near pairs of good nodes that have met before: a repeat says nothing about its ends."""
        count = 0
        for one in sorted(self._free):
            pair = (one, one + 1)
            if count < WITNESSES and self._is_good(pair) and set(pair) <= self._free:
                self._free -= set(pair)
                count += 1
                yield pair

    def _is_good(self, pair: Group) -> bool:
        domains = {self._fleet.domains[node] for node in pair if node < len(self._fleet.nodes)}
        return set(pair) <= self._classification.clear and len(domains) == 1 and pair in self._run_counts
