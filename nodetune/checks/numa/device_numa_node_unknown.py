"""The firmware reports no NUMA node for a device.

Why it matters: NCCL, UCX, Slurm and irqbalance place threads, buffers and interrupts by the device's NUMA node. With -1
they guess, and memory for a GPU or a card comes from the far socket half of the time. The kernel takes the node from
the proximity (_PXM) of the host bridge in the firmware's tables.
Confirm manually: grep . /sys/bus/pci/devices/*/numa_node | grep -- -1$
Side effects of the fix: The fix needs a firmware update and a reboot.
Sources: https://docs.kernel.org/admin-guide/abi-testing.html (sysfs-bus-pci, numa_node) ;
https://github.com/torvalds/linux/commit/63692df103e9c76b26c382ce8079283b7df9a99a
"""

from typing import Any

from nodetune.api import BARE_METAL, SEVERAL_NUMA_NODES, Check, Empty, FactsView, manual

CLASSES = ("0302", "0200", "0207", "0108")  # GPUs, network and InfiniBand cards, NVMe disks
DISPLAY = "0300"  # a GPU if the vendor is NVIDIA, otherwise the BMC's display controller


def observe(facts: FactsView) -> dict[str, str]:
    """Return each relevant device whose NUMA node is unknown."""
    devices = facts["pci.devices"].items()
    return {bdf: "unknown" if each["numa_node"] in (-1, None) else "" for bdf, each in devices if _is_relevant(each)}


def _is_relevant(device: Any) -> bool:
    if device.get("virtual_function"):
        return False
    return device["class"] in CLASSES or (device["class"] == DISPLAY and device["vendor"] == "10de")


CHECK = Check(
    observe=observe,
    needs=("pci.devices",),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES),
    accept=Empty("a NUMA node"),
    remedy=manual(
        "Update the BIOS, and look for an option that maps PCIe to NUMA nodes (ACPI SRAT, NUMA per socket, L3 as NUMA). "
        "To test only: echo N > /sys/bus/pci/devices/BDF/numa_node (taints the kernel, lost at reboot)."
    ),
    severity="medium",
    name="NUMA node",
    cost="setting",
)
