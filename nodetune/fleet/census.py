"""The hosts of a run as they come in: of each, only what is compared is kept; in the end, what differs. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from nodetune import show
from nodetune.fleet import groups, measures, verdicts
from nodetune.fleet.comparisons import Comparison, every
from nodetune.fleet.found import FleetFinding
from nodetune.fleet.groups import GPU, Grouping, Key
from nodetune.fleet.judge import Entry, Judge, Numbers, Reference, apart_from_others
from nodetune.fleet.seen import seen
from nodetune.model import HostFacts, Unread
from nodetune.once import Verdicts
from nodetune.view import Missing, Unreadable, View


class BadReference(ValueError):
    """The host or file to compare with is none."""


class BadGroup(ValueError):
    """The fact to group by says nothing on any host."""


@dataclass
class Column:
    """The numbers of one measure over all hosts: which host, which device, how much (20 bytes each)."""

    hosts: array[int] = field(default_factory=lambda: array("I"))
    values: array[float] = field(default_factory=lambda: array("d"))
    devices: list[str] = field(default_factory=list)

    def add(self, host: int, found: Iterable[tuple[str, float]]) -> None:
        for device, value in found:
            self.hosts.append(host)
            self.values.append(value)
            self.devices.append(device)


@dataclass
class Group:
    """The hosts that are held against each other, by their number."""

    name: str
    members: list[int]


class Row(NamedTuple):
    """What is compared of one host: its group, what it has of each thing, and its numbers."""

    key: Key
    entries: tuple[Entry, ...]
    numbers: tuple[Mapping[str, float], ...]


class Census:
    """Takes the facts of one host after the other, lets them go, and tells in the end who differs from the others."""

    def __init__(
        self, comparisons: Iterable[Comparison] | None = None, by: str = GPU, reference: str | HostFacts | None = None
    ) -> None:
        self.comparisons = tuple(every().values() if comparisons is None else comparisons)
        self._same = [each for each in self.comparisons if each.kind == "same"]
        self._apart = [each for each in self.comparisons if each.kind == "apart"]
        self._verdicts = {each.id: Verdicts(each.needs) for each in self._same}
        self._grouping = Grouping(by)
        self._inventory: Mapping[str, tuple[str, ...]] = {}
        self._hosts: list[str] = []
        self._keys: list[Key] = []
        self._rows: dict[str, list[Entry]] = {each.id: [] for each in self._same}
        self._columns = {each.id: Column() for each in self._apart}
        self._known: dict[Any, Any] = {}
        self._reference = reference

    def needs(self) -> set[str]:
        """The facts that it looks at."""
        compared = set().union(*(each.needs for each in self.comparisons), set())
        return compared | set(self._grouping.needs()) if self.comparisons else set()

    def expect(self, hosts: Mapping[str, tuple[str, ...]]) -> None:
        """The hosts that will come, and the inventory's groups that each is in. Raises BadReference."""
        self._inventory = hosts
        if isinstance(self._reference, str) and self._reference not in hosts:
            raise BadReference(
                f"--reference {self._reference!r}: no such file, and none of the {len(hosts)} hosts of this run"
            )

    def add(self, host: HostFacts) -> None:
        """Take what is compared from the facts of one host."""
        self.take(host.host, self.row(host))

    def row(self, host: HostFacts) -> Row:
        """What is compared, from the facts of one host."""
        entries = (self._verdicts[each.id].of(host, partial(_safely, each)) for each in self._same)
        numbers = (_measured(each, host) for each in self._apart)
        return Row(self._grouping.key(host, self._inventory.get(host.host, ())), tuple(entries), tuple(numbers))

    def take(self, host: str, row: Row) -> None:
        """Keep the row of one host."""
        number = len(self._hosts)
        self._hosts.append(host)
        self._keys.append(self._same_one(row.key))
        for same, entry in zip(self._same, row.entries, strict=True):
            self._rows[same.id].append(self._same_one(entry))
        for apart, found in zip(self._apart, row.numbers, strict=True):
            self._columns[apart.id].add(number, ((self._same_one(device), each) for device, each in found.items()))

    def _same_one(self, value: Any) -> Any:
        """One object for all equal ones: most hosts have the same, and it is kept once."""
        return self._known.setdefault(value, value)

    def findings(self) -> dict[str, list[tuple[FleetFinding, ...]]]:
        """host → the findings about it, once for each time that it was added. Raises BadReference."""
        if len(self._hosts) < 2 and not self._reference:
            return {}
        told: list[list[FleetFinding]] = [[] for _ in self._hosts]
        compared, reference = self._groups(), self._reference_row()
        for comparison in self._same:
            for group in compared:
                self._compare(comparison, group, reference, told)
        for comparison in self._apart:
            self._stand_apart(comparison, compared, told)
        found: dict[str, list[tuple[FleetFinding, ...]]] = {}
        for host, findings in zip(self._hosts, told, strict=True):
            found.setdefault(host, []).append(tuple(findings))
        return found

    def _groups(self) -> list[Group]:
        names, by_name = groups.names(self._keys), dict[str, Group]()
        for number, key in enumerate(self._keys):
            by_name.setdefault(names[key], Group(names[key], [])).members.append(number)
        if self._keys and all(key.unread for key in self._keys):
            raise BadGroup(f"--group-by {self._grouping.by}: read on none of the {len(self._keys)} hosts")
        return list(by_name.values())

    def _reference_row(self) -> Reference | None:
        """The host to compare with; None without one. Raises BadReference for a host that was not there."""
        if isinstance(self._reference, HostFacts):
            rows = {each.id: _safely(each, self._reference) for each in self._same}
            key = self._grouping.key(self._reference, ())
            return Reference(self._reference.host, groups.names([*self._keys, key])[key], rows)
        if self._reference is None:
            return None
        if self._reference in self._hosts:
            number = self._hosts.index(self._reference)
            name = groups.names(self._keys)[self._keys[number]]
            return Reference(self._reference, name, {each.id: self._rows[each.id][number] for each in self._same})
        if self._reference in self._inventory:
            return Reference(self._reference, "", {})
        raise BadReference(
            f"--reference {self._reference!r}: no such file, and none of the {len(self._hosts)} hosts of this run"
        )

    def _compare(
        self, comparison: Comparison, group: Group, reference: Reference | None, told: list[list[FleetFinding]]
    ) -> None:
        rows = self._rows[comparison.id]
        judge = Judge(comparison, group.name, [rows[number] for number in group.members], reference)
        for number in group.members:
            told[number].append(judge.verdict(rows[number]))

    def _stand_apart(self, comparison: Comparison, compared: list[Group], told: list[list[FleetFinding]]) -> None:
        column, of_host = (
            self._columns[comparison.id],
            {each: group.name for group in compared for each in group.members},
        )
        numbers: dict[str, Numbers] = {group.name: [] for group in compared}
        for number, device, value in zip(column.hosts, column.devices, column.values, strict=True):
            numbers[of_host[number]].append((number, device, value))
        for group in compared:
            found = apart_from_others(comparison, group.name, numbers[group.name])
            unknown = verdicts.skipped(comparison, group.name, "not known on this host, or not comparable now")
            for number in group.members:
                told[number].append(found.get(number, unknown))


def _measured(comparison: Comparison, host: HostFacts) -> dict[str, float]:
    try:
        found = measures.named(comparison.measure)(View(host, comparison.needs))
    except (Missing, Unreadable, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return {}  # not known is not odd
    return {show.plain(device): value for device, value in found.items()}


def _safely(comparison: Comparison, host: HostFacts) -> Entry:
    """What a host has; a host may send any shape of data, and what makes no sense is unread."""
    try:
        return seen(comparison, host)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as problem:
        return Unread(f"the facts have an unexpected shape: {show.plain(repr(problem), 120)}")
