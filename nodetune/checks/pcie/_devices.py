"""What several checks ask of the PCI devices: which are what, and what their links could do."""

from __future__ import annotations

from typing import Any

Devices = dict[str, dict[str, Any]]

BRIDGE = "0604"
NVME = "0108"
MELLANOX = "15b3"
FULL = "full speed and width"


def bridges(devices: Devices) -> Devices:
    return {bdf: each for bdf, each in devices.items() if each["class"] == BRIDGE}


def mellanox_cards(devices: Devices) -> Devices:
    """Physical functions of ConnectX and BlueField cards; virtual ones take these settings from them."""
    return {
        bdf: each
        for bdf, each in devices.items()
        if each["vendor"] == MELLANOX and each["class"][:2] == "02" and not each.get("virtual_function")
    }


def ends_a_link(device: dict[str, Any]) -> bool:
    """Whether the device is the lower end of a PCIe link.

    Below a root port come, in turn, the lower end of a link and (in a switch) the upper end of the next one; between
    the ports of one switch there is no link.
    """
    return len(device["parents"]) % 2 == 1


def link(bdf: str, devices: Devices) -> str | None:
    """How the link above a device trained, against what both of its ends can do; None where that is not known."""
    device = devices[bdf]
    above = devices.get(device["parents"][-1], {}) if device["parents"] else {}
    lost = []
    for key, text in (("link_speed_gts", "{:g} of {:g} GT/s"), ("link_width", "x{} of x{}")):
        now = device[key]
        able = [end["max_" + key] for end in (device, above) if end.get("max_" + key)]
        if now is None or not able:
            return None
        if now < min(able):
            lost.append(text.format(now, min(able)))
    return ", ".join(lost) or FULL
