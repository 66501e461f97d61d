"""Find the network cards without a driver, and why, as far as the kernel log shows it."""

from __future__ import annotations

from typing import Any

from nodetune.api import Absent, FactsView
from nodetune.checks.shared.kernel_events import UPTIME, by_device, of_devices
from nodetune.checks.shared.pci_devices import Devices

NEEDS = ("pci.devices", "kernel_log.nics", UPTIME)
CARDS = ("0200", "0207")
"""Ethernet and InfiniBand. Other controllers of the class are mostly for wireless networks."""
AMAZON = "1d0f"
"""efa-without-driver judges its adapters."""


def without_driver(facts: FactsView, with_peers: bool) -> dict[str, str] | Absent:
    """Return card → what it lacks, empty if it has a driver: of cards whose peers have one, or of all others.

    Without a list of devices, only the log shows it.
    """
    refused = by_device(of_devices(facts, "kernel_log.nics"), "refused") if facts.readable("kernel_log.nics") else {}
    if facts.readable("pci.devices") is None and refused:
        return {} if with_peers else refused
    devices: Devices = facts["pci.devices"]
    if not any(each["driver"] for each in devices.values()):
        return Absent("these facts name no driver of any device")
    cards = {
        bdf: each
        for bdf, each in devices.items()
        if each["class"] in CARDS and each["vendor"] != AMAZON and not each.get("virtual_function")
    }
    used = {(each["vendor"], each["device"]): each["driver"] for each in cards.values() if _in_use(each)}
    found = {}
    for bdf, each in cards.items():
        peers = used.get((each["vendor"], each["device"]), "")
        if each["driver"] or bool(peers) == with_peers:
            of_peers = f", others of its model have {peers}" * bool(peers)
            found[bdf] = "" if each["driver"] else f"{refused.get(bdf, 'no driver')}{of_peers}"
    return found


def _in_use(card: dict[str, Any]) -> bool:
    return bool(card["driver"]) and "vfio" not in card["driver"]
