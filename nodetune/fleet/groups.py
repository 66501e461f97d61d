"""Which hosts are alike enough to be compared. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodetune import show
from nodetune.derived import lookup
from nodetune.model import Absent, Each, HostFacts, Value
from nodetune.view import Missing, Unreadable, View

WAYS = GPU, INVENTORY, ALL = "gpu", "inventory", "all"
BY_GPU = ("gpu.names", "gpu.pci_device_id", "pci.gpus", "pci.devices", "host.virtual")


class Key(NamedTuple):
    """What tells a host's group: GPU names or, where the driver does not answer, their PCI device IDs; what goes with it."""

    name: str
    ids: str = ""
    more: str = ""
    unread: bool = False


class Grouping:
    """Puts hosts into groups: by the models of their GPUs, by the inventory's groups, by a fact, or all into one."""

    def __init__(self, by: str = GPU) -> None:
        self.by = by

    def needs(self) -> tuple[str, ...]:
        """The facts that it looks at."""
        return BY_GPU if self.by == GPU else () if self.by in (INVENTORY, ALL) else (self.by,)

    def key(self, host: HostFacts, groups: Iterable[str]) -> Key:
        """The group of a host; its name is known when all hosts have been seen."""
        if self.by == ALL:
            return Key("all hosts")
        if self.by == INVENTORY:
            return Key("+".join(sorted(groups)) or "in no group")
        return _by_gpu(host) if self.by == GPU else self._by_fact(host)

    def _by_fact(self, host: HostFacts) -> Key:
        fact = lookup(host, self.by)
        if isinstance(fact, Value):
            return Key(show.plain(f"{self.by} {show.value(fact.value)}", 200))
        if isinstance(fact, Each):
            values = {show.value(each.value) for each in fact.of.values() if isinstance(each, Value)}
            return Key(show.plain(f"{self.by} {' + '.join(sorted(values)) or 'none'}", 200))
        return Key(f"{self.by} absent") if isinstance(fact, Absent) else Key(f"{self.by} unread", unread=True)


def names(keys: Iterable[Key]) -> dict[Key, str]:
    """The groups' names, for people: GPUs that answered on some host name those of the same IDs that did not."""
    known = list(keys)
    models = {key.ids: key.name for key in known if key.ids and key.name}
    told = {key: key.name or models.get(key.ids, f"GPU {key.ids}") for key in known}
    return {key: f"{name} ({key.more})" if key.more else name for key, name in told.items()}


def _by_gpu(host: HostFacts) -> Key:
    view = View(host, BY_GPU)
    virtual = "virtual" if view.readable("host.virtual") is True else ""
    found, ids = _distinct(view, "gpu.names"), _ids(view)
    return Key(found if found or ids else "no GPU", ids, virtual)


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
