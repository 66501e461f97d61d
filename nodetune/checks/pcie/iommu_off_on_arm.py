"""The IOMMU (SMMU) of an Arm GPU host is off.

Why it matters: Grace needs its SMMU on: the CPU and the GPU share one address space through it, and GPUDirect Storage on
Grace Hopper asks for an IOMMU that is on and translating.
Confirm by hand: ls /sys/class/iommu
Side effects of the fix: None known; this is how the platform is shipped. Needs a reboot.
Sources: https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/index.html ;
https://docs.nvidia.com/grace-perf-tuning-guide/index.html
"""

from nodetune.conditions import BARE_METAL, GPU_ON_PCI
from nodetune.expect import AtLeast, Equals
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> int:
    return len(facts["pci.iommu.units"])


CHECK = Check(
    needs=("pci.iommu.units",),
    observe=observe,
    accept=AtLeast(1),
    unit="SMMU units",
    applies=(BARE_METAL, GPU_ON_PCI, When("host.arch", Equals("aarch64"), "not an Arm host")),
    remedy=manual(
        "Remove arm-smmu.disable_bypass, iommu=off and iommu.passthrough=1 from the kernel command line and switch the SMMU on "
        "in the firmware set-up; then reboot."
    ),
    severity="medium",
)
