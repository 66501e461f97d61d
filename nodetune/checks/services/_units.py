"""Describe units, and detect hosts with NVSwitches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.api import FactAbsentError, FactsView

TIME_SERVICES = ("chrony", "chronyd", "ntp", "ntpd", "ntpsec", "openntpd", "systemd-timesyncd")
NVSWITCH_NEEDS = ("pci.devices", "gpu.names", "host.virtual")


def state(unit: Mapping[str, Any] | None) -> str:
    """Describe a unit: running, not running, failed or not installed, and whether the next boot starts it."""
    if unit is None:
        return "not installed"
    if unit["active"] != "active":
        return "failed" if unit["active"] == "failed" else "not running"
    return "running, but not started at boot" if unit["enabled"] in ("disabled", "masked") else "running"


def running(facts: FactsView, names: Iterable[str]) -> list[str]:
    """Return the active units. Two names of one unit (chrony, chronyd) count once."""
    units = {name: facts.get(f"services.{name}") for name in names}
    active = {name: unit for name, unit in units.items() if unit and unit["active"] == "active"}
    by_process = {unit["pid"] or name: name for name, unit in reversed(active.items())}
    return [name for name in active if name in by_process.values()]


def require_nvswitch(facts: FactsView) -> None:
    """Raise FactAbsentError unless this host has NVSwitches that it manages itself.

    Up to Hopper, NVSwitches are PCI devices. A virtual machine manages those on its bus (full passthrough), and its host
    does not. Those of HGX B200 and B300 are not PCI devices: there the GPU's name decides, on bare metal only, because
    a virtual machine may have the GPUs without the switches.
    """
    switches = [each for each in facts["pci.devices"].values() if each["vendor"] == "10de" and each["class"] == "0680"]
    if switches and all("vfio" in (each.get("driver") or "") for each in switches):
        raise FactAbsentError("the NVSwitches belong to a virtual machine")
    if not switches and not _board_with_hidden_switches(facts):
        raise FactAbsentError("no NVSwitch on this host")


def _board_with_hidden_switches(facts: FactsView) -> bool:
    names = facts.readable("gpu.names", {}).values()
    return not facts["host.virtual"] and any(re.search(r"\bB[23]00\b", name) for name in names)
