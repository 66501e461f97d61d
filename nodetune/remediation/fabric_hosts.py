"""Which adapters of a fabric are for computing on which node of Slurm, by the facts of the hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactsView
from nodetune.api.model import HostResult
from nodetune.audit.evaluate import MALFORMED
from nodetune.checks.slurm import nvlink_blocks_unknown
from nodetune.foundation import nodeset
from nodetune.remediation.fabric_file import NAME, Fabric

NEEDS = (
    *("slurm.present", "slurm.config", "slurm.topology", "rdma.guid", "rdma.devices", "pci.gpus", "pci.devices"),
    *nvlink_blocks_unknown.CHECK.needs,
)


class UnplacedError(Exception):
    """A host has no place in the fabric; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where Slurm has a node: its name there, the version and the file, and for each topology what is above the node."""

    node: str
    version: tuple[int, ...] = ()
    file: str = ""
    above: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass
class Nodes:
    """Nodes of Slurm: the links of their compute adapters, their facts, and the hosts without a place by the reason."""

    links: dict[str, Counter[str]] = field(default_factory=dict)
    facts: dict[str, FactsView] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    unplaced: dict[str, list[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """GUIDs of all adapters of the hosts."""

    def leave(self, host: str, why: str) -> None:
        self.unplaced.setdefault(why, []).append(host)


def nodes(results: Iterable[HostResult], fabric: Fabric) -> Nodes:
    """Find the hosts that are nodes of Slurm. Two with one name, or with one GUID, have no place."""
    views = {each.host: FactsView(each.facts, NEEDS, lookup) for each in results if each.facts}
    views = {host: view for host, view in views.items() if view.readable("slurm.present") is True}
    places = {host: _place(host, view) for host, view in views.items()}
    names = Counter(place.node for place in places.values())
    owners = Counter(guid for view in views.values() for guid in set(_guids(view).values()))
    found = Nodes(used=set(owners))
    for host, view in views.items():
        node = places[host].node
        try:
            _check(node, names)
            links = _links(view, fabric, owners)
        except UnplacedError as why:
            found.leave(host, str(why))
        except MALFORMED:
            found.leave(host, "its facts are malformed")
        else:
            found.links[node], found.facts[node], found.places[node] = links, view, places[host]
    return found


def _check(node: str, names: Counter[str]) -> None:
    if names[node] > 1:
        raise UnplacedError("another host has its name in Slurm")
    if not NAME.fullmatch(node):
        raise UnplacedError("Slurm allows no such name")


def _place(host: str, view: FactsView) -> Place:
    """Return what Slurm has of a host; nothing where that is malformed."""
    try:
        told = view.readable("slurm.topology", {})
        version = tuple(map(int, (told.get("version") or "0").split(".")[:2]))
        above = {str(name): [*map(str, names)] for name, names in (told.get("above") or {}).items()}
        return Place(str(told.get("hostname") or host), version, str(told.get("file") or ""), above)
    except MALFORMED:
        return Place(host)


def _guids(view: FactsView) -> dict[str, str]:
    """Return device → its GUID as ibnetdiscover writes it."""
    told = view.readable("rdma.guid", {})
    return {name: str(guid).replace(":", "").lower() for name, guid in told.items()} if isinstance(told, dict) else {}


def _links(view: FactsView, fabric: Fabric, owners: Counter[str]) -> Counter[str]:
    guids = {name: guid for name, guid in _guids(view).items() if guid in fabric.adapters}
    if not guids:
        raise UnplacedError("the fabric has no adapter with the GUID of one of its own")
    if any(owners[guid] > 1 for guid in guids.values()):
        raise UnplacedError("another host has an adapter with the same GUID")
    links: Counter[str] = Counter()
    for name in compute_adapters(view, set(guids)) & guids.keys():
        links.update(fabric.adapters[guids[name]].links)
    links = Counter({guid: count for guid, count in links.items() if guid in fabric.switches})
    if not links:
        raise UnplacedError("none of the adapters next to its GPUs leads to a switch of this fabric")
    return links


def compute_adapters(view: FactsView, within: set[str]) -> set[str]:
    """Return the adapters next to the GPUs, which jobs use; without GPUs, all. Raise UnplacedError if this is unknown.

    Those for storage are elsewhere on the PCIe tree; where they are as near, they are of another model and near fewer GPUs, or
    not `within` the fabric.
    """
    devices = view.readable("rdma.devices", {})
    cards = {name: each for name, each in devices.items() if each.get("bdf") and not each.get("virtual_function")}
    bus, gpus = view.readable("pci.devices", {}), view.readable("pci.gpus")
    if gpus is None or not cards:
        raise UnplacedError("its GPUs or its adapters could not be read")
    if not gpus or len(cards) == 1:
        return set(cards)
    if any(bdf not in bus for bdf in (*gpus, *(each["bdf"] for each in cards.values()))):
        raise UnplacedError("where its GPUs and adapters are on the PCIe tree is unknown")
    near = {gpu: _nearest(bus[gpu], {name: bus[each["bdf"]] for name, each in cards.items()}) for gpu in gpus}
    model = {name: each.get("board_id") or each.get("hca_type") for name, each in cards.items()}
    served = Counter(kind for names in near.values() for kind in {model[name] for name in names})
    most = [kind for kind, count in served.items() if count == max(served.values())]
    if len(most) > 1:
        most = [kind for kind in most if any(model.get(name) == kind for name in within)]
    if len(most) != 1:
        raise UnplacedError("adapters of several models are equally near its GPUs: which are for storage is unknown")
    return {name for names in near.values() for name in names if model[name] == most[0]}


def _nearest(gpu: Mapping[str, Any], cards: Mapping[str, Mapping[str, Any]]) -> set[str]:
    near = {name: _nearness(gpu, card) for name, card in cards.items()}
    return {name for name, each in near.items() if each == max(near.values())}


def _nearness(gpu: Mapping[str, Any], card: Mapping[str, Any]) -> tuple[int, bool]:
    """Return how many bridges are above both, from a PCIe switch on, and whether they are on one NUMA node."""
    shared = 0
    for one, other in zip(gpu["parents"], card["parents"], strict=False):
        if one != other:
            break
        shared += 1
    return (shared if shared > 1 else 0), gpu["numa_node"] == card["numa_node"]


def folded(unplaced: Mapping[str, list[str]]) -> list[str]:
    """Return a line for each reason with its hosts."""
    return [f"{nodeset.fold(hosts)}: {why}" for why, hosts in sorted(unplaced.items())]
