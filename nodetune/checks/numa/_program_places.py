"""The NUMA nodes that are near the GPUs of each running program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodetune.api import FactsView

NEEDS = ("gpu.process_settings", "gpu.bdf", "pci.devices", "numa.nodes", "numa.distances")
REMOTE = 20
"""REMOTE_DISTANCE of the kernel's include/linux/topology.h: nodes of one processor are closer, as with AMD's NPS4 (12)."""
MONITORS = {"dcgm-exporter", "nv-hostengine", "nvidia-cuda-mps", "nvidia-smi", "nvitop", "nvsm_core", "nvtop", "Xorg"}
"""The first 15 letters of programs that only watch or serve GPUs."""


def programs(facts: FactsView) -> Iterator[tuple[str, dict[str, Any], set[str]]]:
    """Yield (name and process, its settings, the nodes near its GPUs); without one where a GPU's place is unknown."""
    nodes, devices, places = facts["numa.nodes"], facts["pci.devices"], facts["gpu.bdf"]
    for pid, program in facts["gpu.process_settings"].items():
        own = {str(devices.get(places.get(gpu, ""), {}).get("numa_node")) for gpu in program["gpus"]} & set(nodes)
        known = program["name"] not in MONITORS and all(nodes[node]["cpus"] for node in own)
        yield f"{program['name']} ({pid})", program, _near(facts, own) if known else set()


def _near(facts: FactsView, own: set[str]) -> set[str]:
    distances = facts.readable("numa.distances") or {}
    order = sorted(distances, key=int)
    return own | {other for node in own & set(order) for other, far in zip(order, distances[node]) if far < REMOTE}
