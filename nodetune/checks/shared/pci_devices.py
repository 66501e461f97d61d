"""PCI devices by kind, and what their links support."""

from __future__ import annotations

from typing import Any

from nodetune.api import FactAbsentError, FactsView

Devices = dict[str, dict[str, Any]]

BRIDGE = "0604"
NVME = "0108"
MELLANOX = "15b3"
AMAZON = "1d0f"
FULL = "full speed and width"


def bridges(devices: Devices) -> Devices:
    return {bdf: each for bdf, each in devices.items() if each["class"] == BRIDGE}


def mellanox_cards(devices: Devices) -> Devices:
    """Return the physical functions of ConnectX and BlueField cards; virtual functions inherit their settings."""
    return {
        bdf: each
        for bdf, each in devices.items()
        if each["vendor"] == MELLANOX and each["class"][:2] == "02" and not each.get("virtual_function")
    }


def efa_adapters(devices: Devices) -> Devices:
    return {bdf: each for bdf, each in devices.items() if each["vendor"] == AMAZON and each["device"].startswith("efa")}


def physical_gpus(facts: FactsView) -> list[str]:
    """Return the GPUs on the bus without the virtual functions of a vGPU host."""
    devices = facts.readable("pci.devices", {})
    return [bdf for bdf in facts["pci.gpus"] if not devices.get(bdf, {}).get("virtual_function")]


def gpus_of_host(facts: FactsView) -> list[str]:
    """Return the GPUs that programs of this host use: neither virtual functions nor those given to virtual machines.

    Raise FactAbsentError if virtual machines have all of them.
    """
    devices = facts.readable("pci.devices", {})
    found = [bdf for bdf in physical_gpus(facts) if "vfio" not in (devices.get(bdf, {}).get("driver") or "")]
    if not found:
        raise FactAbsentError("all GPUs belong to virtual machines")
    return found


def ends_a_link(device: dict[str, Any]) -> bool:
    """Return whether the device is the lower end of a PCIe link.

    Below a root port, the lower end of a link and (in a switch) the upper end of the next one alternate. Between the
    ports of one switch there is no link.
    """
    return len(device["parents"]) % 2 == 1


def link(bdf: str, devices: Devices) -> str | None:
    """Compare how the link above a device trained with what both ends support; None where either is unknown."""
    device = devices[bdf]
    above = devices.get(device["parents"][-1], {}) if device["parents"] else {}
    lost = []
    for key, text in (("link_speed_gts", "{:g} of {:g} GT/s"), ("link_width", "x{} of x{}")):
        now = device[key]
        maxima = [end["max_" + key] for end in (device, above) if end.get("max_" + key)]
        if now is None or len(maxima) < 2:
            return None
        if now < min(maxima):
            lost.append(text.format(now, min(maxima)))
    return ", ".join(lost) or FULL
