"""Group the hosts that are alike enough to be compared. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import Absent, Each, HostFacts, Value
from nodetune.foundation import text

WAYS = GPU, INVENTORY, ALL = "gpu", "inventory", "all"
BY_GPU = ("gpu.names", "gpu.pci_device_id", "pci.gpus", "pci.devices", "host.virtual")


class Key(NamedTuple):
    """What identifies the group of a host: its GPU names or, where the driver does not answer, their PCI device IDs."""

    name: str
    ids: str = ""
    more: str = ""
    unread: bool = False


class Grouping:
    """Puts hosts into groups: by the models of their GPUs, by the inventory's groups, by a fact, or all into one."""

    def __init__(self, by: str = GPU) -> None:
        self.by = by

    def needs(self) -> tuple[str, ...]:
        """Return the facts that it reads."""
        return BY_GPU if self.by == GPU else () if self.by in (INVENTORY, ALL) else (self.by,)

    def key(self, host: HostFacts, groups: Iterable[str]) -> Key:
        """Return the group of a host; `names` finds its name after all hosts were added."""
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


def names(keys: Iterable[Key]) -> dict[Key, str]:
    """Name the groups. GPUs that do not answer get the name of those with the same IDs on another host."""
    given = list(keys)
    models = {key.ids: key.name for key in given if key.ids and key.name}
    plain = {key: key.name or models.get(key.ids, f"GPU {key.ids}") for key in given}
    return {key: f"{name} ({key.more})" if key.more else name for key, name in plain.items()}


def _by_gpu(host: HostFacts) -> Key:
    view = FactsView(host, BY_GPU)
    virtual = "virtual" if view.readable("host.virtual") is True else ""
    found, ids = _distinct(view, "gpu.names"), _ids(view)
    return Key(found if found or ids else "no GPU", ids, virtual)


def _distinct(view: FactsView, name: str) -> str:
    found = view.readable(name)
    values = found.values() if isinstance(found, Mapping) else ()
    return " + ".join(sorted({text.plain(each, 100) for each in values}))


def _ids(view: FactsView) -> str:
    """Return the device IDs of the GPUs on the PCI bus, which are there even if the driver does not answer."""
    try:
        devices = view["pci.devices"]
        found = {text.plain(devices[bdf]["device"], 10) for bdf in view["pci.gpus"]}
    except (FactAbsentError, FactUnreadError, KeyError, TypeError):
        return ""
    return " + ".join(sorted(found))
