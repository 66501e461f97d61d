"""The distance from a GPU to its nearest RDMA card, for two checks."""

from __future__ import annotations

from typing import Any

from nodetune.api import FactAbsentError, FactsView

SWITCH = "same PCIe switch"
NODE = "same NUMA node"
FAR = "another NUMA node"
UNKNOWN = "its NUMA node is unknown"
NEEDS = ("pci.gpus", "pci.devices", "rdma.ports", "numa.node_count")


def nearest(facts: FactsView) -> dict[str, str]:
    """Return the location of the nearest RDMA card for the BDF of each GPU, if there are enough cards to compare."""
    devices = facts["pci.devices"]
    addresses = {port["bdf"] for port in facts["rdma.ports"].values() if port.get("bdf")}
    cards = [devices[bdf] for bdf in sorted(addresses) if bdf in devices]
    if not cards:
        raise FactAbsentError("no RDMA card on the PCI bus")
    one_node = facts.get("numa.node_count", 1) < 2
    gpus = {gpu: devices[gpu] for gpu in facts["pci.gpus"] if gpu in devices}
    slots = {bdf.rpartition(".")[0] for bdf in addresses}
    if not one_node and len(slots) < len({gpu.get("numa_node") for gpu in gpus.values()}):
        raise FactAbsentError("fewer RDMA cards than NUMA nodes with GPUs")
    ports, nodes = {_root_port(card) for card in cards}, {card.get("numa_node", -1) for card in cards}
    return {bdf: _location(gpu, ports, nodes, one_node) for bdf, gpu in gpus.items()}


def _location(gpu: Any, ports: set[Any], nodes: set[Any], one_node: bool) -> str:
    if _root_port(gpu) and _root_port(gpu) in ports:
        return SWITCH
    if one_node or gpu.get("numa_node", -1) in nodes - {-1, None}:
        return NODE
    return UNKNOWN if gpu.get("numa_node", -1) == -1 or nodes <= {-1, None} else FAR


def _root_port(device: Any) -> Any:
    """Return the root port. Two devices under one root port share a switch: without a switch it has one slot."""
    parents = device.get("parents") or [None]
    return parents[0]
