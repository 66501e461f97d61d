"""Collect what is compared of each host of a run. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nodetune.api.model import FleetFinding, HostFacts
from nodetune.audit.fleet.cohorts import GPU, Grouping, Key
from nodetune.checks.fleet_comparisons import Comparison, every
from nodetune.facts.memo import ResultCache
from nodetune.foundation import UserError

if TYPE_CHECKING:
    from nodetune.audit.fleet.observations import Entry


class ReferenceHostError(UserError):
    """The host or file to compare with does not exist."""


class CohortError(UserError):
    """The fact to group by was not read on any host."""


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


class Row(NamedTuple):
    """What is compared of one host: its group, its entry for each comparison, and its numbers."""

    key: Key
    entries: tuple[Entry, ...]
    numbers: tuple[Mapping[str, float], ...]


class Collector:
    """Takes the facts of hosts one by one, keeps only what is compared, and reports which hosts differ.

    `keys` holds the cohort of each host by its number; `rows` and `columns` hold what is compared, by comparison.
    """

    def __init__(
        self, comparisons: Iterable[Comparison] | None = None, by: str = GPU, reference: str | HostFacts | None = None
    ) -> None:
        self.comparisons = tuple(every().values() if comparisons is None else comparisons)
        self.same = [each for each in self.comparisons if each.kind == "same"]
        self.outlier = [each for each in self.comparisons if each.kind == "outlier"]
        self._verdicts = {each.id: ResultCache(each.needs) for each in self.same}
        self.grouping = Grouping(by)
        self.inventory: Mapping[str, tuple[str, ...]] = {}
        self.hosts: list[str] = []
        self.keys: list[Key] = []
        self.rows: dict[str, list[Entry]] = {each.id: [] for each in self.same}
        self.columns = {each.id: Column() for each in self.outlier}
        self._interned: dict[Any, Any] = {}
        self.reference = reference

    def needs(self) -> set[str]:
        """Return the facts that it reads."""
        compared = set().union(*(each.needs for each in self.comparisons), set())
        return compared | set(self.grouping.needs()) if self.comparisons else set()

    def expect(self, hosts: Mapping[str, tuple[str, ...]]) -> None:
        """Announce the hosts of the run, with the inventory groups of each. Raise ReferenceHostError."""
        self.inventory = hosts
        if isinstance(self.reference, str) and self.reference not in hosts:
            raise ReferenceHostError(
                f"--reference {self.reference!r}: no such file, and none of the {len(hosts)} hosts of this run"
            )

    def add(self, host: HostFacts) -> None:
        """Take what is compared from the facts of one host."""
        self.take(host.host, self.row(host))

    def row(self, host: HostFacts) -> Row:
        """Return what is compared, from the facts of one host."""
        from nodetune.audit.fleet.observations import entry_of, numbers_of  # one host alone needs none of it

        entries = (self._verdicts[each.id].of(host, partial(entry_of, each)) for each in self.same)
        measured = (numbers_of(each, host) for each in self.outlier)
        return Row(self.grouping.key(host, self.inventory.get(host.host, ())), tuple(entries), tuple(measured))

    def take(self, host: str, row: Row) -> None:
        """Keep the row of one host."""
        number = len(self.hosts)
        self.hosts.append(host)
        self.keys.append(self._same_one(row.key))
        for same, entry in zip(self.same, row.entries, strict=True):
            self.rows[same.id].append(self._same_one(entry))
        for comparison, found in zip(self.outlier, row.numbers, strict=True):
            self.columns[comparison.id].add(number, ((self._same_one(device), each) for device, each in found.items()))

    def _same_one(self, value: Any) -> Any:
        """Return one object for all equal ones: most hosts have the same values, which are stored once."""
        return self._interned.setdefault(value, value)

    def findings(self) -> dict[str, list[tuple[FleetFinding, ...]]]:
        """Return host → its findings, once for each time that it was added. Raise ReferenceHostError."""
        if len(self.hosts) < 2 and not self.reference:
            return {}
        from nodetune.audit.fleet import evaluate  # one host alone needs none of it

        return evaluate.findings(self)
