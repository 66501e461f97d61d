"""How many GPUs and network adapters a host has, and whether those that it once had, or should have, are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodetune.api import FactsView
from nodetune.checks.shared.pci_devices import mellanox_cards, physical_gpus

NEEDS = ("pci.gpus", "pci.devices", "gpu.count")
NAMES = {"gpus": "GPUs", "adapters": "network adapters"}


def present(facts: FactsView) -> dict[str, int]:
    """Return how many there are of each of NAMES. Raise FactUnreadError.

    The bus counts: it has a GPU that a virtual machine holds, that a cgroup hides, or that has no driver. NVML is asked only
    where no GPU is on a bus. An adapter is a slot: how many functions it shows is a setting of its firmware.
    """
    gpus = len(physical_gpus(facts)) if facts.get("pci.gpus") else facts.get("gpu.count", 0)
    slots = {bdf.rpartition(".")[0] for bdf in mellanox_cards(facts.get("pci.devices", {}))}
    return {"gpus": gpus, "adapters": len(slots)}


def most(before: Mapping[str, Any], now: Mapping[str, int]) -> dict[str, int]:
    """Return the greater number of each of NAMES: what a memory keeps."""
    return {kind: max(before.get(kind, 0), now[kind]) for kind in NAMES}


def judge(before: Mapping[str, Any], now: Mapping[str, int], promised: int, *, virtual: bool) -> tuple[str, str]:
    """Return what is missing, and why that cannot be judged; both empty if nothing is missing."""
    wanted = {kind: before.get(kind, 0) for kind in NAMES}
    missing = {kind: f"{now[kind]} of {most} {NAMES[kind]}" for kind, most in wanted.items() if now[kind] < most}
    said = ", ".join(missing.values())
    if "gpus" in missing:
        return said, "a virtual machine may be given fewer" if virtual else ""
    if missing:
        return said, "an adapter may be in a reset"
    if now["gpus"] < promised:
        return f"{now['gpus']} of {promised} GPUs", "policy, label or machine type promise them, and none was ever seen"
    return "", ""
