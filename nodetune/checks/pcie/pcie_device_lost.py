"""A PCIe port has cut off or lost its device.

Why it matters: After an uncorrectable error the port contains it (DPC): it takes the link down, and every access to the
device fails. If the hot-plug controller finds the slot empty, the kernel removes the device. A GPU or network card is then
gone until a reset or a power cycle. The check counts the whole boot.
Healthy exception: A device that comes back in its slot, and one from which the kernel says that it recovered. Drives that
an administrator pulls out, and a Thunderbolt or USB4 dock without a GPU: it has bridges and USB controllers.
Confirm manually: journalctl -k -b | grep -E 'DPC|pciehp|device recovery'
Side effects of the fix: None: it only reports.
Sources: https://github.com/torvalds/linux (drivers/pci/pcie/dpc.c, drivers/pci/pcie/err.c,
drivers/pci/hotplug/pciehp_ctrl.c, pciehp_hpc.c) ; https://docs.kernel.org/PCI/pci-error-recovery.html ;
https://github.com/NVIDIA/NVSentinel/issues/1334
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import UPTIME, by_device, of_devices

DRIVE, BRIDGE, USB = "0108", "0604", "0c03"
"""The first half of the PCI class."""
GPUS = ("03", "12")
"""Its first byte: display controllers and processing accelerators."""


def observe(facts: FactsView) -> dict[str, str] | str:
    events = of_devices(facts, "kernel_log.pcie_ports")
    lost = [
        {**event, "text": event["text"] + _named(event["below"])}
        for event in events
        if not _only_drives(event["below"]) and not _dock(event)
    ]
    return by_device(lost, "cut off", "gone") or ""


def _only_drives(below: Mapping[str, str]) -> bool:
    return bool(below) and set(below.values()) <= {DRIVE, BRIDGE} and DRIVE in below.values()


def _dock(event: Mapping[str, Any]) -> bool:
    """Return whether a dock was unplugged. GPUs have USB controllers, too, and an external GPU is below such a port."""
    kinds = set(event["below"].values())
    return event["kind"] == "gone" and {BRIDGE, USB} <= kinds and not any(kind.startswith(GPUS) for kind in kinds)


def _named(below: Mapping[str, str]) -> str:
    devices = sorted(address for address, found_as in below.items() if found_as != BRIDGE)
    return f" ({', '.join(devices)})" if devices else ""


CHECK = Check(
    needs=("kernel_log.pcie_ports", UPTIME),
    observe=observe,
    log=inf,
    accept=Empty("no device cut off or lost"),
    remedy=manual(
        "Drain the node, and find what was below the port: lspci -t on an identical machine. Power the host off and on. If it "
        "happens again, check seating, riser and power cables, read the BMC's event log, and have the card or the board "
        "replaced."
    ),
    severity="high",
)
