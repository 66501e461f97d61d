"""Which hosts are alike enough to be compared. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodetune import show
from nodetune.derived import lookup
from nodetune.model import Absent, Each, HostFacts, Value
from nodetune.view import Missing, Unreadable, View

WAYS = GPU, INVENTORY, ALL = "gpu", "inventory", "all"
UNREAD = "unread"
BY_GPU = ("gpu.names", "gpu.pci_device_id", "pci.gpus", "pci.devices", "host.virtual")

Key = tuple[str, str, str]
"""How a group is told, by what (GPU names or, where the driver does not answer, PCI device IDs), and what goes with it."""


class Grouping:
    """Puts hosts into groups: by the models of their GPUs, by the inventory's groups, by a fact, or all into one."""

    def __init__(self, by: str = GPU) -> None:
        self.by = by
        self._models: dict[str, str] = {}

    def needs(self) -> tuple[str, ...]:
        """The facts that it looks at."""
        return BY_GPU if self.by == GPU else () if self.by in (INVENTORY, ALL) else (self.by,)

    def key(self, host: HostFacts, groups: Iterable[str]) -> Key:
        """The group of a host; its name is known when all hosts have been seen."""
        if self.by == ALL:
            return "", "all hosts", ""
        if self.by == INVENTORY:
            return "", "+".join(sorted(groups)) or "in no group", ""
        return self._by_gpu(host) if self.by == GPU else self._by_fact(host)

    def name(self, key: Key) -> str:
        """The group's name, for people."""
        kind, name, more = key
        told = self._models.get(name, f"GPU {name}") if kind == "ids" else name
        return f"{told} ({more})" if more else told

    def _by_fact(self, host: HostFacts) -> Key:
        fact = lookup(host, self.by)
        if isinstance(fact, Value):
            return "", show.plain(f"{self.by} {show.value(fact.value)}", 200), ""
        if isinstance(fact, Each):
            values = {show.value(each.value) for each in fact.of.values() if isinstance(each, Value)}
            return "", show.plain(f"{self.by} {' + '.join(sorted(values)) or 'none'}", 200), ""
        return ("", f"{self.by} absent", "") if isinstance(fact, Absent) else (UNREAD, f"{self.by} unread", "")

    def is_unread(self, key: Key) -> bool:
        """Whether the fact to group by could not be read on that host."""
        return key[0] == UNREAD

    def _by_gpu(self, host: HostFacts) -> Key:
        view = View(host, BY_GPU)
        virtual = "virtual" if view.readable("host.virtual") is True else ""
        names, ids = _distinct(view, "gpu.names"), _ids(view)
        if names:
            if ids:
                self._models[ids] = names
            return "names", names, virtual
        return ("ids", ids, virtual) if ids else ("names", "no GPU", virtual)


def _distinct(view: View, name: str) -> str:
    found = view.readable(name)
    values = found.values() if isinstance(found, Mapping) else ()
    return " + ".join(sorted({show.plain(each, 100) for each in values}))


def _ids(view: View) -> str:
    """The device IDs of the GPUs on the PCI bus: there even when the driver does not answer."""
    try:
        devices = view["pci.devices"]
        found = {show.plain(devices[bdf]["device"], 10) for bdf in view["pci.gpus"]}
    except (Missing, Unreadable, KeyError, TypeError):
        return ""
    return " + ".join(sorted(found))
