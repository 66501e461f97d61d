"""PCIe ACS keeps a ConnectX-8 from reaching its GPU directly.

Why it matters: On GB300, a second function of the card (Data Direct) and the GPU are below one switch of the card, and
RDMA goes straight between them if three ports have their access controls so: the GPU's port does not redirect
completions, the function's port does not redirect requests, and the root port does not validate sources. Linux and the
firmware switch all of them on. Then DMA-BUF cannot register GPU memory, and traffic takes the way through the CPU: 361
instead of 426 GB/s in an all-reduce of two nodes.
Confirm manually: rdma_topo check (of rdma-core, as root)
Side effects of the fix: GPU and card become one IOMMU group, so both go to the same virtual machine or none. Before
Linux 6.11, the kernel with iommu.passthrough=1 and these controls starts CUDA on no GPU.
Sources: https://github.com/linux-rdma/rdma-core/blob/master/kernel-boot/rdma_topo ;
https://github.com/NVIDIA/nodewright-packages/pull/111 ; https://github.com/NVIDIA/nodewright-packages/pull/122 ;
https://docs.nvidia.com/multi-node-nvlink-systems/grace-blackwell-cx8-gpudirect-rdma-guide/gpudirect_rdma_testing.html
"""

from __future__ import annotations

from nodetune.api import BARE_METAL, GPU_ON_PCI, Absent, Check, Empty, Equals, FactsView, When, manual
from nodetune.checks.pcie._roles import NEEDS, hypervisor

CARD, GRACE = ("15b3", "2100"), ("22b1", "22b2", "22b8")
CONTROLS = ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")


def observe(facts: FactsView) -> dict[str, list[str]] | Absent:
    reason = hypervisor(facts)
    if reason:
        return Absent(f"a hypervisor needs the isolation: {reason}")
    off = _off(facts)
    ports = {bdf: port["enabled"] for bdf, port in facts["pci.acs"].items() if bdf in off}
    return {
        bdf: [f"{bit} {'on' if bit in on else 'off'}" for bit in CONTROLS if (bit in on) == (bit == off[bdf])]
        for bdf, on in ports.items()
    }


def _off(facts: FactsView) -> dict[str, str]:
    """Return the one control that must be off, by port: root → shared switch → (Data Direct, a second switch → GPU)."""
    found: dict[str, str] = {}
    devices = facts["pci.devices"]
    ways = [each["parents"] for each in devices.values() if (each["vendor"], each["device"]) == CARD]
    for root, *_, shared, mine in (way for way in ways if len(way) > 2 and devices[way[0]]["device"] in GRACE):
        for way in (devices[gpu]["parents"] for gpu in facts["pci.gpus"] if gpu in devices):
            if shared in way[:-1]:
                found |= {root: "SrcValid", mine: "ReqRedir", way[way.index(shared) + 1]: "CmpltRedir"}
    return found


CHECK = Check(
    needs=("pci.gpus", "pci.acs", *NEEDS),
    observe=observe,
    accept=Empty("the controls that Data Direct needs"),
    applies=(BARE_METAL, GPU_ON_PCI, When("host.arch", Equals("aarch64"), "Data Direct is for Grace")),
    remedy=manual(
        "rdma_topo write-grub-acs (rdma-core 61 or newer), then reboot into Linux 6.11 or newer (or a vendor's kernel that knows pci=config_acs). "
        "Before 6.11, boot with iommu.passthrough=0 as well. Afterwards: rdma_topo check"
    ),
    severity="medium",
)
