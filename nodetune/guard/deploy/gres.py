"""gres.conf from what was read of a node: its GPUs with the cores that are near them, for where Slurm lists none."""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import HostFacts
from nodetune.onhost import cpu_list

FACTS = (
    "gpu.minor_number",
    "gpu.bdf",
    "gpu.names",
    "pci.devices",
    "numa.nodes",
    "cpu.count",
    "cpu.cores",
    "slurm.gres",
    "slurm.present",
)


def lacking(facts: HostFacts) -> tuple[str, ...]:
    """Return the lines that gres.conf needs for the GPUs of this node; none if it lists or detects them."""
    view = FactsView(facts, FACTS, lookup)
    try:
        there = view.readable("slurm.gres") or {}
        listed = there.get("gpus") or there.get("autodetect") not in (None, "off")
        if listed or not view.readable("slurm.present"):
            return ()
        return _lines(view)
    except (FactAbsentError, FactUnreadError):  # no GPUs, or a driver that does not answer: the audit tells
        return ()


def _lines(view: FactsView) -> tuple[str, ...]:
    """Return the lines with cores in Slurm's numbering, in which the cores of a NUMA node are consecutive."""
    minors, bdfs, names = (view.get(name) for name in ("gpu.minor_number", "gpu.bdf", "gpu.names"))
    nodes, devices = view.readable("numa.nodes") or {}, view.readable("pci.devices") or {}
    cores = _cores(nodes, view.readable("cpu.count"), view.readable("cpu.cores"))
    described = sorted(
        (number, _type(names[gpu]), cores.get(str(devices.get(bdfs[gpu], {}).get("numa_node")), ""))
        for gpu, number in minors.items()
    )
    return tuple(
        f"Name=gpu Type={kind} File=/dev/nvidia{cpu_list.bracketed(number for number, _, _ in same)}{near and f' Cores={near}'}"
        for (kind, near), same in (
            (key, list(found)) for key, found in groupby(described, key=lambda each: (each[1], each[2]))
        )
    )


def _cores(nodes: Mapping[str, Mapping[str, Any]], count: Any, cores: Any) -> dict[str, str]:
    """Return NUMA node → its cores; empty if there is one node, or if they differ."""
    busy = {number: node for number, node in nodes.items() if node["cpu_count"]}
    threads = count // cores if count and cores and count % cores == 0 else 0
    if len(busy) < 2 or not threads or any(node["cpu_count"] % threads for node in busy.values()):
        return {}
    found, first = {}, 0
    for number, node in sorted(busy.items(), key=lambda each: int(re.match(r"\d+", each[1]["cpus"] or "0")[0])):  # type: ignore[index]
        last = first + node["cpu_count"] // threads - 1
        found[number] = f"{first}-{last}"
        first = last + 1
    return found


def _type(name: str) -> str:
    """Shorten `NVIDIA A100-SXM4-80GB` to a100, `NVIDIA GeForce RTX 4090` to rtx_4090, as AutoDetect finds them."""
    words = re.sub(r"(?i)\b(nvidia|geforce|tesla|quadro)\b", "", str(name)).split()
    text = "_".join(words[: 2 if words[:1] == ["RTX"] else 1]).partition("-")[0]
    return re.sub(r"[^a-z0-9_]", "", text.lower()) or "gpu"
