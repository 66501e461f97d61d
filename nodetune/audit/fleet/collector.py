"""Collect the compared values of each host of a run, and group the hosts that are alike. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import Absent, Each, HostFacts, Value
from nodetune.audit.fleet.observations import Entry, entry_of, numbers_of
from nodetune.checks.fleet_comparisons import ALL, GPU, INVENTORY, Comparison, every
from nodetune.facts.memo import ResultCache, identities
from nodetune.foundation import UserError, text

NO_GPU = "no GPU"
BY_GPU = ("gpu.names", "gpu.pci_device_id", "pci.gpus", "pci.devices", "host.virtual")


class ReferenceHostError(UserError):
    """The host or file to compare with does not exist."""


class CohortError(UserError):
    """The fact to group by was not read on any host."""


class Key(NamedTuple):
    """The identity of a host's group: its GPU names or, if the driver does not answer, their PCI device IDs."""

    name: str
    ids: str = ""
    more: str = ""
    unread: bool = False


class Grouping:
    """Puts hosts into groups: by the models of their GPUs, by the inventory's groups, by a fact, or all into one."""

    def __init__(self, by: str = GPU) -> None:
        self.by = by

    def needs(self) -> tuple[str, ...]:
        """Return the facts that grouping reads."""
        return BY_GPU if self.by == GPU else () if self.by in (INVENTORY, ALL) else (self.by,)

    def key(self, host: HostFacts, groups: Iterable[str]) -> Key:
        """Return the key of a host's group; the group gets its name after all hosts were added."""
        if self.by == ALL:
            return Key("all hosts")
        if self.by == INVENTORY:
            return Key("+".join(sorted(groups)) or "in no group")
        return _by_gpu(host) if self.by == GPU else self._by_fact(host)

    def _by_fact(self, host: HostFacts) -> Key:
        fact = lookup(host, self.by)
        if isinstance(fact, Value):
            return Key(text.plain(f"{self.by} {text.value(fact.value)}", 200))
        if isinstance(fact, Each):
            values = {text.value(each.value) for each in fact.of.values() if isinstance(each, Value)}
            return Key(text.plain(f"{self.by} {' + '.join(sorted(values)) or 'none'}", 200))
        return Key(f"{self.by} absent") if isinstance(fact, Absent) else Key(f"{self.by} unread", unread=True)


def _by_gpu(host: HostFacts) -> Key:
    view = FactsView(host, BY_GPU)
    virtual = "virtual" if view.readable("host.virtual") is True else ""
    found, ids = _distinct(view, "gpu.names"), _ids(view)
    return Key(found if found or ids else NO_GPU, ids, virtual)


def _distinct(view: FactsView, name: str) -> str:
    found = view.readable(name)
    values = found.values() if isinstance(found, Mapping) else ()
    return " + ".join(sorted({text.plain(each, 100) for each in values}))


def _ids(view: FactsView) -> str:
    """Return the device IDs of the GPUs on the PCI bus, which exist even if the driver does not answer."""
    try:
        devices = view["pci.devices"]
        found = {text.plain(devices[bdf]["device"], 10) for bdf in view["pci.gpus"]}
    except (FactAbsentError, FactUnreadError, KeyError, TypeError):
        return ""
    return " + ".join(sorted(found))


@dataclass
class Column:
    """The numbers of one measure over all hosts: host, device and value (20 bytes each)."""

    hosts: array[int] = field(default_factory=lambda: array("I"))
    values: array[float] = field(default_factory=lambda: array("d"))
    devices: list[str] = field(default_factory=list)

    def add(self, host: int, found: Iterable[tuple[str, float]]) -> None:
        for device, value in found:
            self.hosts.append(host)
            self.values.append(value)
            self.devices.append(device)


class HostValues(NamedTuple):
    """The compared values of one host: its group, its entry for each comparison, and its numbers."""

    key: Key
    entries: tuple[Entry, ...]
    numbers: tuple[Mapping[str, float], ...]


class FleetComparison:
    """Takes the facts of hosts one by one, keeps the compared values, and reports which hosts differ.

    `keys` holds the cohort of each host by its number; `rows` and `columns` hold the compared values by comparison.
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
        """Return the facts that the collector reads."""
        compared = set().union(*(each.needs for each in self.comparisons), set())
        return compared | set(self.grouping.needs()) if self.comparisons else set()

    def expect(self, hosts: Mapping[str, tuple[str, ...]]) -> None:
        """Announce the hosts of the run, with the inventory groups of each. Raise ReferenceHostError."""
        self.inventory = hosts
        if isinstance(self.reference, str) and self.reference not in hosts:
            raise ReferenceHostError(
                f"--reference {self.reference!r}: no such file, and not one of the {text.count(len(hosts), 'host')} of this run"
            )

    def add(self, host: HostFacts) -> None:
        """Add the compared values of one host."""
        self.take(host.host, self.row(host))

    def row(self, host: HostFacts) -> HostValues:
        """Return the compared values of one host."""
        known_as = identities(host)
        entries = (self._verdicts[each.id].of(host, known_as, partial(entry_of, each)) for each in self.same)
        measured = (numbers_of(each, host) for each in self.outlier)
        return HostValues(self.grouping.key(host, self.inventory.get(host.host, ())), tuple(entries), tuple(measured))

    def take(self, host: str, row: HostValues) -> None:
        """Keep the row of one host."""
        number = len(self.hosts)
        self.hosts.append(host)
        self.keys.append(self._same_one(row.key))
        for same, entry in zip(self.same, row.entries, strict=True):
            self.rows[same.id].append(self._same_one(entry))
        for comparison, found in zip(self.outlier, row.numbers, strict=True):
            self.columns[comparison.id].add(number, ((self._same_one(device), each) for device, each in found.items()))

    def _same_one(self, value: Any) -> Any:
        """Return one object for all equal values: most hosts have the same values, so they are stored once."""
        return self._interned.setdefault(value, value)
