"""The SMMU (IOMMU) of an Arm GPU host is off.

Why it matters: Grace needs its SMMU: the CPU and the GPU share one address space through it. GPUDirect Storage on
Grace Hopper requires an IOMMU that is on and translates.
Confirm manually: ls /sys/class/iommu
Side effects of the fix: None known; this is how the platform is shipped. Needs a reboot.
Sources: https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/index.html ;
https://docs.nvidia.com/grace-perf-tuning-guide/index.html
"""

from nodetune.api import BARE_METAL, GPU_ON_PCI, AtLeast, Check, Equals, FactsView, When, manual


def observe(facts: FactsView) -> int:
    return len(facts["pci.iommu.units"])


CHECK = Check(
    needs=("pci.iommu.units",),
    observe=observe,
    accept=AtLeast(1),
    unit="SMMU units",
    applies=(BARE_METAL, GPU_ON_PCI, When("host.arch", Equals("aarch64"), "not an Arm host")),
    remedy=manual(
        "Remove arm-smmu.disable_bypass, iommu=off and iommu.passthrough=1 from the kernel command line, switch the "
        "SMMU on in the firmware setup, then reboot."
    ),
    severity="medium",
    name="SMMU",
    cost="setting",
)
