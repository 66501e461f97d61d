"""The IOMMU translates DMA instead of passing it through.

Why it matters: In translating mode (DMA, DMA-FQ), each mapping of a GPU, NIC or NVMe drive costs page-table updates
and invalidations. CUDA does not support copies between GPUs over PCIe there. The platform may refuse or detour traffic
between GPU and NIC, and GPUDirect Storage is not guaranteed to work. Pass-through (identity) avoids that cost and keeps
the IOMMU on, which interrupts of more than 255 CPUs need.
Healthy exception: A device of a virtual machine has a translated domain of its own. Virtual functions follow their card,
which is judged.
Confirm manually: cat /sys/kernel/iommu_groups/*/type | sort | uniq -c
Side effects of the fix: Drivers' devices are no longer confined to their own buffers; devices passed to virtual
machines still are. Needs a reboot.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (iommu, iommu.passthrough) ; https://kernel.org/doc/Documentation/ABI/testing/sysfs-kernel-iommu_groups ;
https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/index.html ;
https://rocm.docs.amd.com/en/latest/how-to/system-optimization/mi300x.html
"""

from nodetune.api import BARE_METAL, GPU_ON_PCI, Check, Equals, FactsView, When, kernel_arg


def observe(facts: FactsView) -> dict[str, str]:
    devices = facts["pci.devices"]
    return {
        bdf: domain
        for bdf, domain in facts["pci.iommu.domains"].items()
        if bdf in devices and "vfio" not in (devices[bdf]["driver"] or "") and not devices[bdf].get("virtual_function")
    }


CHECK = Check(
    needs=("pci.devices", "pci.iommu.domains"),
    observe=observe,
    accept=Equals("identity"),
    set="pt",
    absent="pass",
    applies=(BARE_METAL, GPU_ON_PCI, When("host.arch", Equals("x86_64"), "this CPU needs its IOMMU to translate")),
    remedy=kernel_arg("iommu", "iommu.passthrough=1", "iommu=off", "intel_iommu=off", "amd_iommu=off"),
    severity="high",
    cost="bandwidth",
    name="IOMMU",
)
