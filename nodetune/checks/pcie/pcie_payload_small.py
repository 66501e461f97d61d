"""MaxPayload of a GPU or a fast network card is 128 bytes, and its path can carry more.

Why it matters: Each packet carries so much data behind some 24 bytes of header and framing: with 128 bytes 16 % of the link is
lost, with 256 bytes 9 %. The size is the least of a device's path, which firmware or the kernel sets at boot. The path here is
the device and every bridge above it, and each of them can do 256 bytes. From 256 bytes on, the setting is not reported: most
firmware stops there.
Confirm manually: lspci -vv -s BDF | grep MaxPayload (DevCap can, DevCtl does), for the device and each bridge: lspci -PP
Side effects of the fix: Takes effect at the next boot. pci=pcie_bus_perf sets all devices and their read requests.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (pci=pcie_bus_perf, pcie_bus_peer2peer) ;
https://enterprise-support.nvidia.com/s/article/understanding-pcie-configuration-for-maximum-performance
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodetune import data
from nodetune.api import BARE_METAL, Check, Each, Empty, FactsView, Unread, manual

LEAST, FAST_GTS, FAST_LANES = 256, 8, 8


def observe(facts: FactsView) -> dict[str, str | Unread]:
    devices = facts["pci.devices"]
    judged = [bdf for bdf, each in devices.items() if _matters(bdf, each, facts["pci.gpus"])]
    every = facts.fact("pci.config")
    known: Mapping[str, Any] = every.of if isinstance(every, Each) else dict.fromkeys(devices, every)
    return {bdf: _state([bdf, *devices[bdf]["parents"]], known) for bdf in judged}


def _matters(bdf: str, device: dict[str, Any], gpus: list[str]) -> bool:
    if device.get("virtual_function") or "vfio" in (device.get("driver") or ""):
        return False
    if bdf in gpus:
        return not data.gpu(device["device"]).get("c2c")
    fast = (device["max_link_speed_gts"] or 0) >= FAST_GTS and (device["max_link_width"] or 0) >= FAST_LANES
    return device["class"][:2] == "02" and fast


def _state(path: list[str], known: Mapping[str, Any]) -> str | Unread:
    settings = {each: getattr(known.get(each), "value", {}) for each in path}
    now = settings[path[0]].get("max_payload", 0)
    if now >= LEAST:
        return ""
    unread = [each for each, its in settings.items() if "max_payload_able" not in its]
    if unread:
        return Unread(getattr(known.get(unread[0]), "reason", f"MaxPayload of {unread[0]} is unknown"))
    able = min(its["max_payload_able"] for its in settings.values())
    return f"{now} of {able} bytes" if able >= LEAST else ""


CHECK = Check(
    needs=("pci.devices", "pci.config", "pci.gpus"),
    observe=observe,
    accept=Empty("256 bytes or more, or all that the path can"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Set Max Payload Size in the firmware setup to Auto or its largest value; remove pci=pcie_bus_peer2peer from the kernel "
        "arguments if it is there (it sets 128 everywhere). Where the firmware has no such option, boot with pci=pcie_bus_perf."
    ),
    severity="low",
    name="MaxPayload",
)
