"""The IOMMU is off on an AMD host with 255 or more CPUs.

Why it matters: Interrupts can reach a CPU with a number above 254 only by way of the IOMMU (x2APIC with interrupt
remapping). With it off, Linux leaves the CPUs beyond 255 unused, or cannot send device interrupts to them.
Confirm by hand: ls /sys/class/iommu; nproc --all; dmesg | grep -i x2apic
Side effects of the fix: Needs a reboot. Add iommu=pt, or devices pay for translation.
Sources: https://rocm.docs.amd.com/en/latest/how-to/system-optimization/mi300x.html ;
https://github.com/torvalds/linux/blob/master/arch/x86/kernel/apic/apic.c
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import AtLeast, Matches
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> int:
    return len(facts["pci.iommu.units"])


CHECK = Check(
    needs=("pci.iommu.units",),
    observe=observe,
    accept=AtLeast(1),
    unit="IOMMUs",
    applies=(
        BARE_METAL,
        When("cpu.vendor", Matches("(?i)amd|hygon"), "not an AMD CPU"),
        When("cpu.count", AtLeast(255), "fewer than 255 CPUs"),
    ),
    remedy=manual(
        "Enable IOMMU (and local APIC mode Auto or x2APIC) in the firmware set-up, remove amd_iommu=off and iommu=off from the "
        "kernel command line, add iommu=pt, and reboot."
    ),
    severity="high",
)
