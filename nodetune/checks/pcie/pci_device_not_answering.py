"""A GPU, NIC, drive or bridge does not answer on the PCI bus.

Why it matters: The configuration space of the device reads as all ones: it has fallen off the bus or lost power. For a
GPU, the driver logs Xid 79. Programs that use the device hang or die, and commands that query it may hang too. A GPU
that NVML still lists may also be gone from the bus altogether, where the bus has others that it lists.
Healthy exception: SR-IOV has a virtual function answer its vendor and device number with ones.
Does not gate: For a GPU, the driver is more reliable: gpu-lost and gpu-missing gate. A device that is being reset
reads as all ones for a moment, too, and not every job needs every card and drive.
Confirm manually: lspci -s BDF -x | head -2   (rev ff, ff ff ff ff; nothing for a device that is gone)
Side effects of the fix: A power cycle ends everything that runs on the node.
Sources: https://docs.nvidia.com/deploy/xid-errors/index.html ; https://docs.kernel.org/PCI/pci-error-recovery.html
"""

from nodetune.api import Check, Empty, FactsView, repair


def observe(facts: FactsView) -> dict[str, str]:
    """Leave out virtual functions: SR-IOV has them answer their vendor and device number with ones."""
    devices = facts.readable("pci.devices", {})
    found = {
        bdf: "" if answers else "does not answer"
        for bdf, answers in facts["pci.answers"].items()
        if not devices.get(bdf, {}).get("virtual_function")
    }
    listed = set(facts.readable("gpu.bdf", {}).values())
    gone = listed - devices.keys() if listed & devices.keys() else ()
    return found | dict.fromkeys(sorted(gone), "is not on the bus, and NVML lists it")


CHECK = Check(
    needs=("pci.answers", "pci.devices", "gpu.bdf"),
    observe=observe,
    accept=Empty("an answer"),
    remedy=repair(
        "Drain the node and save the logs (nvidia-bug-report.sh, dmesg). Power-cycle it fully (off, not a warm "
        "reboot). If the device stays missing or falls off again, reseat it and check its power cables, then have it "
        "replaced."
    ),
    severity="critical",
    part_of=("gpu-lost", "gpu-missing"),
)
