"""What checks of services share: the states of a unit, and whether the GPUs stand behind NVSwitches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.expect import Equals
from nodetune.model import When
from nodetune.view import Missing, View

SYSTEMD = When("services.manager", Equals("systemd"), "systemd does not run this host")
NVSWITCH_NEEDS = ("pci.devices", "gpu.names")


def state(unit: Mapping[str, Any] | None) -> str:
    """A unit in words: running, not running, failed, not installed; and whether the next boot starts it."""
    if unit is None:
        return "not installed"
    if unit["active"] != "active":
        return "failed" if unit["active"] == "failed" else "not running"
    return "running, but not started at boot" if unit["enabled"] in ("disabled", "masked") else "running"


def running(facts: View, names: Iterable[str]) -> list[str]:
    """Those of the units that are active. Two names of one unit (chrony, chronyd) count once."""
    units = {name: facts.get(f"services.{name}") for name in names}
    active = {name: unit for name, unit in units.items() if unit and unit["active"] == "active"}
    by_process = {unit["pid"] or name: name for name, unit in reversed(active.items())}
    return [name for name in active if name in by_process.values()]


def require_nvswitch(facts: View) -> None:
    """Raises Missing unless this host has NVSwitches that it manages itself.

    Up to Hopper they are PCI devices; those of HGX B200 and B300 are not, so there the GPU's name decides.
    """
    switches = [each for each in facts["pci.devices"].values() if each["vendor"] == "10de" and each["class"] == "0680"]
    names = facts.readable("gpu.names", {}).values()
    if not switches and not any(re.search(r"\bB[23]00\b", name) for name in names):
        raise Missing("no NVSwitch on this host")
