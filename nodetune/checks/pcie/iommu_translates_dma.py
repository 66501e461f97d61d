"""The IOMMU translates every DMA of GPUs, NICs or NVMe drives.

Why it matters: In translating mode (DMA, DMA-FQ) each mapping costs page-table updates and invalidations, peer-to-peer
between GPU and NIC may be refused or detoured, and GPUDirect Storage is not guaranteed to work. Pass-through (identity)
keeps the IOMMU on, which interrupts of more than 255 CPUs need, without that cost.
Confirm by hand: cat /sys/kernel/iommu_groups/*/type | sort | uniq -c
Side effects of the fix: Drivers' devices are no longer confined to their own buffers; devices handed to virtual machines
still are. Needs a reboot.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-kernel-iommu_groups ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/index.html ;
https://rocm.docs.amd.com/en/latest/how-to/system-optimization/mi300x.html
"""

from nodetune.conditions import BARE_METAL, GPU_ON_PCI
from nodetune.expect import Equals
from nodetune.model import Check, When
from nodetune.remedies import kernel_arg
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    devices = facts["pci.devices"]
    return {
        bdf: domain
        for bdf, domain in facts["pci.iommu.domains"].items()
        if "vfio" not in (devices[bdf]["driver"] or "")
    }


CHECK = Check(
    needs=("pci.devices", "pci.iommu.domains"),
    observe=observe,
    accept=Equals("identity"),
    set="pt",
    absent="pass",
    applies=(BARE_METAL, GPU_ON_PCI, When("host.arch", Equals("x86_64"), "this CPU wants its IOMMU to translate")),
    remedy=kernel_arg("iommu"),
    severity="high",
)
