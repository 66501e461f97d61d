"""The NUMA nodes that are near the GPUs of each running program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodetune.api import FactsView
from nodetune.checks.numa import _pairing

NEEDS = ("gpu.process_settings", "gpu.bdf", "pci.devices", "numa.nodes", "numa.distances")
MONITORS = {"dcgm-exporter", "nv-hostengine", "nvidia-cuda-mps", "nvidia-smi", "nvitop", "nvsm_core", "nvtop", "Xorg"}
"""The first 15 letters of programs that only watch or serve GPUs."""


def programs(facts: FactsView) -> Iterator[tuple[str, dict[str, Any], set[str]]]:
    """Yield (name and process, its settings, the nodes near its GPUs); without one where a GPU's place is unknown."""
    nodes, devices, places = facts["numa.nodes"], facts["pci.devices"], facts["gpu.bdf"]
    parts = _pairing.parts(facts.readable("numa.distances", {}))
    for pid, program in facts["gpu.process_settings"].items():
        own = {str(devices.get(places.get(gpu, ""), {}).get("numa_node")) for gpu in program["gpus"]} & set(nodes)
        known = program["name"] not in MONITORS and all(nodes[node]["cpus"] for node in own)
        near = own.union(*({str(other) for other in parts.get(int(node), ())} for node in own))
        yield f"{program['name']} ({pid})", program, near if known else set()
