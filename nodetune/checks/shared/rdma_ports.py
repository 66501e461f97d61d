"""Select and group RDMA ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.foundation.stats import median

Ports = dict[str, dict[str, Any]]

FAST_GBPS = 100

PEERMEM = {"nvidia_peermem", "nv_peer_mem"}
"""Modules that give RDMA cards access to GPU memory where dma-buf does not."""

ROCE_MTU = 4200
"""From here on RoCE sends packets of 4096 bytes, its largest."""


def own(ports: Ports) -> Ports:
    """Return the ports of the hardware itself, without virtual functions."""
    return {name: port for name, port in ports.items() if not port.get("virtual_function")}


IWARP = "RNIC"
"""The node type of devices that do iWARP, such as the ports of an Intel X722."""


def without_iwarp(ports: Ports, devices: Mapping[str, Any]) -> Ports:
    """Return the ports without those of iWARP devices: they have no RoCE GID, and NCCL connects by GIDs."""
    return {
        name: port for name, port in ports.items() if devices.get(name.rpartition("/")[0], {}).get("node_type") != IWARP
    }


def active(ports: Ports, link_layer: str | None = None) -> Ports:
    """Return the ports that are ACTIVE (and of one link layer)."""
    return {
        name: port
        for name, port in own(ports).items()
        if port["state"] == "ACTIVE" and link_layer in (None, port["link_layer"])
    }


def for_gpus(ports: Ports, link_layer: str | None = None) -> Ports:
    """Return the active ports that are fast enough for GPU traffic: management cards can do RoCE as well.

    Next to InfiniBand, Ethernet is for storage and management.
    """
    fast = {name: port for name, port in active(ports).items() if (port["rate_gbps"] or 0) >= FAST_GBPS}
    infiniband = {name: port for name, port in fast.items() if port["link_layer"] == "InfiniBand"}
    if link_layer == "Ethernet" and infiniband:
        return {}
    return infiniband if link_layer == "InfiniBand" else fast


def groups(ports: Ports) -> Iterable[Ports]:
    """Group ports that should be alike: the same port of the same model, with the same link layer.

    A card with two ports shows each as a separate PCI function, so the function number distinguishes the two.
    """
    found: dict[tuple[Any, ...], Ports] = {}
    for name, port in ports.items():
        function = (port["bdf"] or "").rpartition(".")[2]
        key = (port["model"], port["link_layer"], function, name.rpartition("/")[2])
        found.setdefault(key, {})[name] = port
    return found.values()


FEWEST_TO_COMPARE, PEERS_TIMES, PEERS_LEAST = 3, 3, 10


def more_than_peers(counts: Mapping[str, int]) -> dict[str, str]:
    """Return for each of at least three ports the words, if it counts three times as many as its peers, and ten or more."""
    if len(counts) < FEWEST_TO_COMPARE:
        return {}
    middle = median(counts.values())
    return {
        name: f"{count} times, its peers about {middle:g}" if count >= max(PEERS_LEAST, PEERS_TIMES * middle) else ""
        for name, count in counts.items()
    }


def usual(values: Iterable[Any]) -> Any:
    """Return the most frequent value."""
    return Counter(values).most_common(1)[0][0]
