"""The tree of an InfiniBand fabric, as Slurm can have it: each node below one switch, each switch below one other.

Fabrics have more links than a tree: a node has an adapter on each rail, and a leaf switch leads to every spine. So switches
that connect the same are one switch here, and one that a broken or wrong cable makes differ a little belongs to those too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from nodetune.foundation import by_key
from nodetune.remediation.fabric_file import Fabric

DEEPEST = 16
"""Levels: Slurm takes 20."""

Member = TypeVar("Member", bound=Hashable)
Links = Mapping[Member, Counter[str]]
"""Member → GUIDs of switches, each with the number of links to it."""


@dataclass(frozen=True, eq=False)
class TreeSwitch:
    """A switch of the tree: its name, all nodes below it, and either its own nodes or the switches below it."""

    name: str
    below: frozenset[str]
    children: tuple[TreeSwitch, ...] = ()
    guids: frozenset[str] = frozenset()

    def all(self) -> Iterable[TreeSwitch]:
        """Yield those below it, and then itself."""
        for child in self.children:
            yield from child.all()
        yield self


@dataclass(frozen=True)
class Tree:
    """The highest switches, the nodes with as many links to one leaf switch as to another, and those with a few to another."""

    roots: tuple[TreeSwitch, ...]
    torn: tuple[str, ...]
    astray: Mapping[str, str]


def tree(links: Links[str], fabric: Fabric) -> Tree:
    """Return the tree of these nodes, of which only these links count."""
    groups, of = _groups(links)
    torn = tuple(sorted(set(links) - set(of)))
    level = [
        _switch(fabric, guids, (), [node for node, at in of.items() if at == number])
        for number, guids in enumerate(groups)
    ]
    astray = {
        node: ", ".join(sorted(fabric.names[guid] for guid in found if guid not in groups[of[node]]))
        for node, found in links.items()
        if node in of and set(found) - groups[of[node]]
    }
    return Tree(_roots([each for each in level if each.below], fabric), torn, astray)


def _switch(
    fabric: Fabric, guids: frozenset[str], children: Iterable[TreeSwitch], nodes: Iterable[str] = ()
) -> TreeSwitch:
    inner = tuple(sorted(children, key=lambda each: each.name))
    below = frozenset(nodes).union(*(each.below for each in inner))
    return TreeSwitch(min(fabric.names[guid] for guid in guids), below, inner, guids)


def _roots(leaves: list[TreeSwitch], fabric: Fabric) -> tuple[TreeSwitch, ...]:
    """Return the switches that nothing of the fabric joins, with all between them and the leaf switches."""
    level, seen = leaves, {guid for each in leaves for guid in each.guids}
    for _ in range(DEEPEST):
        above = {each: _above(each, fabric, seen) for each in level}
        reached = {guid for found in above.values() for guid in found}
        if not reached:
            break
        seen |= reached
        groups, of = _groups({each: found for each, found in above.items() if found}, joined=True)
        gathered = by_key((of[each], each) for each in level if each in of)
        level = [
            *(each for each in level if each not in of),
            *(_widened(fabric, guids, gathered[number]) for number, guids in enumerate(groups) if number in gathered),
        ]
    return tuple(sorted(_joined(level, fabric), key=lambda each: each.name))


def _above(switch: TreeSwitch, fabric: Fabric, seen: set[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for guid in switch.guids:
        found.update(
            {to: count for to, count in fabric.switches[guid].links.items() if to in fabric.switches and to not in seen}
        )
    return found


def _widened(fabric: Fabric, guids: frozenset[str], children: list[TreeSwitch]) -> TreeSwitch:
    """Return the switch above some. One alone takes its place, so that it is found further up."""
    if len(children) > 1:
        return _switch(fabric, guids, children)
    (only,) = children
    return TreeSwitch(only.name, only.below, only.children, guids)


def _joined(level: list[TreeSwitch], fabric: Fabric) -> Iterable[TreeSwitch]:
    """Yield one switch for all that cables join, although no switch above them does: a ring, a dragonfly."""
    sets = _Sets()
    for switch in fabric.switches.values():
        for guid in switch.links:
            if guid in fabric.switches:
                sets.join(switch.guid, guid)
    for each in level:
        for leaf in each.all():
            for guid in leaf.guids:
                sets.join(min(each.guids), guid)
    for together in by_key((sets.first(min(each.guids)), each) for each in level).values():
        if len(together) == 1:
            yield together[0]
        else:
            inner = tuple(sorted(together, key=lambda each: each.name))
            below = frozenset().union(*(each.below for each in inner))
            yield TreeSwitch(
                f"fabric-{inner[0].name}", below, inner, frozenset().union(*(each.guids for each in inner))
            )


class _Sets:
    """Sets of what is joined."""

    def __init__(self) -> None:
        self._next: dict[str, str] = {}

    def first(self, item: str) -> str:
        while (after := self._next.get(item, item)) != item:
            self._next[item] = self._next.get(after, after)
            item = after
        return item

    def join(self, one: str, other: str) -> None:
        low, high = sorted((self.first(one), self.first(other)))
        self._next[high] = low


def _groups(links: Links[Member], *, joined: bool = False) -> tuple[list[frozenset[str]], dict[Member, int]]:
    """Return switches that share more than half of their members, and to which of these sets a member has the most links.

    A member with as many links to one set as to another is in none; if `joined`, both sets are one.
    """
    below: dict[str, set[Member]] = {}
    for member, found in links.items():
        for guid in found:
            below.setdefault(guid, set()).add(member)
    sets = _alike(links.values(), below)
    of = {member: _most(found, sets) for member, found in links.items()}
    if joined:
        for most in of.values():
            for other in most[1:]:
                sets.join(most[0], other)
    groups = by_key((sets.first(guid), guid) for guid in sorted(below))
    number = {name: at for at, name in enumerate(groups)}
    chosen = {member: number[sets.first(most[0])] for member, most in of.items() if joined or len(most) == 1}
    return [frozenset(guids) for guids in groups.values()], chosen


def _alike(links: Iterable[Counter[str]], below: Mapping[str, set[Member]]) -> _Sets:
    """Return the sets of switches that share more than half of their members."""
    sets = _Sets()
    first: dict[str, str] = {}
    for same in by_key((frozenset(members), guid) for guid, members in below.items()).values():
        for guid in same:
            first[guid] = same[0]
            sets.join(same[0], guid)
    for few in {tuple(sorted({first[guid] for guid in found})) for found in links}:
        for one, other in combinations(few, 2):
            if 2 * len(below[one] & below[other]) > len(below[one] | below[other]):
                sets.join(one, other)
    return sets


def _most(found: Counter[str], sets: _Sets) -> list[str]:
    """Return the sets to which most links lead, which are several if they are equal."""
    votes: Counter[str] = Counter()
    for guid, count in found.items():
        votes[sets.first(guid)] += count
    most = max(votes.values())
    return sorted(name for name, count in votes.items() if count == most)
