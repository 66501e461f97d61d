"""PCIe ACS redirects peer-to-peer traffic to the root complex.

Why it matters: With ReqRedir or CmpltRedir set on a switch's downstream ports, every transfer between a GPU and its
neighbours below the switch (GPU, NIC, NVMe) goes to the root complex and back instead of straight across. NVIDIA names
the symptoms: peer-to-peer is reported as working, but is slow, hangs or delivers wrong data. Linux sets these bits at
boot whenever an IOMMU is on. Redirection on root ports, above several GPUs without NVLink, sends their copies through the
IOMMU: NCCL was seen to hang there unless the IOMMU passes DMA through.
Healthy exception: Root ports may redirect while the IOMMU passes DMA through or is off, above GPUs that NVLink joins,
and above a single GPU. So may ports of switches without GPUs.
Confirm manually: lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'
Side effects of the fix: Devices below the switch are no longer isolated from one another: never do this on a host that
passes devices to virtual machines (the check does not apply there). IOMMU groups become larger at the next boot.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.kernel.org/admin-guide/kernel-parameters.html (pci=disable_acs_redir) ;
https://www.gnu.org/software/grub/manual/grub/grub.html#Quoting ;
https://docs.nvidia.com/gpudirect-storage/best-practices-guide/index.html ;
https://github.com/NVIDIA/nccl/issues/2079 ; https://github.com/vllm-project/vllm/issues/51513 (root ports)
"""

from __future__ import annotations

from typing import Any

from nodetune import data
from nodetune.api import BARE_METAL, GPU_ON_PCI, Absent, Check, Each, Empty, Equals, FactsView, Value, When, manual
from nodetune.checks.pcie._roles import NEEDS, hypervisor

REDIRECTS = ("ReqRedir", "CmpltRedir", "EgressCtrl")


def observe(facts: FactsView) -> dict[str, list[str]] | Absent:
    reason = hypervisor(facts)
    if reason:
        return Absent(f"a hypervisor needs the isolation: {reason}")
    devices = facts["pci.devices"]
    above_gpus = {bridge for gpu in facts["pci.gpus"] if gpu in devices for bridge in devices[gpu]["parents"]}
    roots = _above_translated(facts, devices)
    return {
        bdf: [bit for bit in port["enabled"] if bit in REDIRECTS]
        for bdf, port in facts["pci.acs"].items()
        if (port["port"] == "downstream" and set(devices.get(bdf, {}).get("parents", ())[-1:]) & above_gpus)
        or (port["port"] == "root" and bdf in roots)
    }


def _above_translated(facts: FactsView, devices: dict[str, Any]) -> set[str]:
    """Return the root ports above GPUs that copy over PCIe, and whose DMA the IOMMU translates or may translate."""
    gpus = [gpu for gpu in facts["pci.gpus"] if gpu in devices]
    if not facts["derived.gpus_over_pcie"] or any(
        data.gpu(devices[gpu].get("device", "")).get("nvlinks") for gpu in gpus
    ):
        return set()
    domains = facts.fact("pci.iommu.domains")
    of = domains.of if isinstance(domains, Each) else {}
    passed = {gpu for gpu in gpus if isinstance(of.get(gpu, domains), Absent) or of.get(gpu) == Value("identity")}
    return {devices[gpu]["parents"][0] for gpu in gpus if gpu not in passed and devices[gpu]["parents"]}


CHECK = Check(
    needs=("pci.gpus", "pci.acs", "pci.iommu.domains", "derived.gpus_over_pcie", *NEEDS),
    observe=observe,
    accept=Empty("no redirection on the ports of switches with GPUs"),
    applies=(BARE_METAL, GPU_ON_PCI, When("host.arch", Equals("x86_64"), "left as the firmware sets it on this CPU")),
    remedy=manual(
        "With the GPUs idle, for each port named: setpci -s BDF ECAP_ACS+0x6.w=0000. This is lost at the next boot. "
        'To make it permanent, add pci=disable_acs_redir="BDF;BDF;..." with these ports to the kernel command line, with '
        "the double quotes: GRUB drops what follows a bare semicolon. Or switch ACS off in the firmware setup. For root ports, "
        "the fix of iommu-translates-dma is enough."
    ),
    severity="high",
    name="ACS",
)
