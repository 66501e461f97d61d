"""How near a GPU is to the nearest RDMA card. Shared by two checks."""

from __future__ import annotations

from typing import Any

from nodetune.view import Missing, View

SWITCH = "same PCIe switch"
NODE = "same NUMA node"
FAR = "another NUMA node"
NOT_KNOWN = "its NUMA node is not known"
NEEDS = ("pci.gpus", "pci.devices", "rdma.ports", "numa.node_count")


def nearest(facts: View) -> dict[str, str]:
    """BDF of each GPU → where its nearest RDMA card sits. Not judged where the cards are too few for the NUMA nodes."""
    devices = facts["pci.devices"]
    places = {port["bdf"] for port in facts["rdma.ports"].values() if port.get("bdf")}
    cards = [devices[bdf] for bdf in sorted(places) if bdf in devices]
    if not cards:
        raise Missing("no RDMA card on the PCI bus")
    one_node = facts.get("numa.node_count", 1) < 2
    gpus = {gpu: devices[gpu] for gpu in facts["pci.gpus"] if gpu in devices}
    slots = {bdf.rpartition(".")[0] for bdf in places}
    if not one_node and len(slots) < len({gpu.get("numa_node") for gpu in gpus.values()}):
        raise Missing("fewer RDMA cards than NUMA nodes with GPUs")
    return {bdf: _place(gpu, cards, one_node) for bdf, gpu in gpus.items()}


def _place(gpu: Any, cards: list[Any], one_node: bool) -> str:
    if any(_root_port(gpu) and _root_port(gpu) == _root_port(card) for card in cards):
        return SWITCH
    nodes = {card.get("numa_node", -1) for card in cards}
    if one_node or gpu.get("numa_node", -1) in nodes - {-1, None}:
        return NODE
    return NOT_KNOWN if gpu.get("numa_node", -1) == -1 or nodes <= {-1, None} else FAR


def _root_port(device: Any) -> Any:
    """Two devices behind one root port share a switch: a port without one leads to a single slot."""
    parents = device.get("parents") or [None]
    return parents[0]
