"""The distance from a GPU to its nearest RDMA card, for two checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodetune.api import FactAbsentError, FactsView
from nodetune.checks.shared.rdma_ports import for_gpus

SWITCH = "same PCIe switch"
NODE = "same NUMA node"
FAR = "another NUMA node"
UNKNOWN = "its NUMA node is unknown"
NEEDS = ("pci.gpus", "pci.devices", "rdma.ports", "numa.node_count", "numa.distances")
ANOTHER_PROCESSOR = 20
"""The distance that ACPI gives to a remote node. Parts of one processor (NPS4, SNC) are nearer: 11 to 16."""


def nearest(facts: FactsView) -> dict[str, str]:
    """Return the location of the nearest RDMA card for the BDF of each GPU, if there are enough cards to compare."""
    devices = facts["pci.devices"]
    found = facts["rdma.ports"]
    if not for_gpus(found) and all(port["link_layer"] == "Ethernet" for port in found.values()):
        raise FactAbsentError("no RDMA card for GPUs: slower Ethernet is for the front end")
    addresses = {port["bdf"] for port in found.values() if port.get("bdf")}
    cards = [devices[bdf] for bdf in sorted(addresses) if bdf in devices]
    if not cards:
        raise FactAbsentError("no RDMA card on the PCI bus")
    one_node = facts.get("numa.node_count", 1) < 2
    gpus = {gpu: devices[gpu] for gpu in facts["pci.gpus"] if gpu in devices}
    slots = {bdf.rpartition(".")[0] for bdf in addresses}
    if not one_node and len(slots) < len({gpu.get("numa_node") for gpu in gpus.values()}):
        raise FactAbsentError("fewer RDMA cards than NUMA nodes with GPUs")
    near = parts(facts.readable("numa.distances", {}))
    ports, nodes = {_root_port(card) for card in cards}, {card.get("numa_node", -1) for card in cards}
    return {bdf: _location(gpu, ports, nodes, one_node, near) for bdf, gpu in gpus.items()}


def parts(distances: Mapping[str, list[int]]) -> dict[int, set[int]]:
    """Return the nodes of the same processor, for each node."""
    nodes = sorted(map(int, distances))
    return {
        node: {other for other, far in zip(nodes, distances[str(node)]) if far < ANOTHER_PROCESSOR} for node in nodes
    }


def _location(gpu: Any, ports: set[Any], nodes: set[Any], one_node: bool, near: Mapping[int, set[int]]) -> str:
    if _root_port(gpu) and _root_port(gpu) in ports:
        return SWITCH
    mine = gpu.get("numa_node", -1)
    if one_node or ({mine} | near.get(mine, set())) & (nodes - {-1, None}):
        return NODE
    return UNKNOWN if mine == -1 or nodes <= {-1, None} else FAR


def _root_port(device: Any) -> Any:
    """Return the root port. Two devices under one root port share a switch: without a switch it has one slot."""
    parents = device.get("parents") or [None]
    return parents[0]
