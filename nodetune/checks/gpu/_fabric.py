"""When the NVLinks of a host are its own and ready: not while it boots, nor if Fabric Manager gives GPUs to virtual machines."""

from typing import Any

from nodetune.api import Absent, FactsView, Unread

UPTIME = "host.uptime_s"
BOOT_SECONDS = 300
"""Seconds after a boot in which links train, and the driver and Fabric Manager may still be busy."""

MODE = "services.fabric_mode"
GIVEN_AWAY = Absent("Fabric Manager gives the GPUs to virtual machines: this one may be in no partition")


def booting(facts: FactsView) -> bool:
    seconds: float = facts.readable(UPTIME, BOOT_SECONDS)
    return seconds < BOOT_SECONDS


def settled(facts: FactsView, found: dict[str, Any], good: str) -> dict[str, Any]:
    """Return what was found, but while the host boots, only what is good: links may still be training."""
    early = "the host has just booted, and links may still be training: audit again in a few minutes"
    unsure = {name for name, told in found.items() if isinstance(told, str) and told != good and booting(facts)}
    return {name: Unread(f"{told}: {early}") if name in unsure else told for name, told in found.items()}


def shared(facts: FactsView) -> bool:
    """Return whether the host shares the NVSwitches among virtual machines (FABRIC_MODE=1), or runs vGPUs (2)."""
    return facts.readable(MODE) in (1, 2)
