"""Access control services send traffic between devices of one PCIe switch up to the CPU.

Why it matters: With ReqRedir or CmpltRedir set on a switch's downstream ports, every transfer between a GPU and its
neighbours below the switch (GPU, NIC, NVMe) goes to the root complex and back instead of straight across. NVIDIA
names the symptoms: peer-to-peer reported as working, but slow, hanging or with wrong data. Linux switches these
bits on at boot whenever an IOMMU is on. Ports of the root complex are not judged: their traffic is there already.
Confirm by hand: lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'
Side effects of the fix: Devices below the switch are no longer isolated from one another: never on a host that hands
devices to virtual machines (this check does not apply there). IOMMU groups become larger at the next boot.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.kernel.org/admin-guide/kernel-parameters.html (pci=disable_acs_redir) ;
https://docs.nvidia.com/gpudirect-storage/best-practices-guide/index.html
"""

from nodetune.checks.pcie._roles import NEEDS, hypervisor
from nodetune.conditions import BARE_METAL, GPU_ON_PCI
from nodetune.expect import Empty, Equals
from nodetune.model import Absent, Check, When
from nodetune.remedies import manual
from nodetune.view import View

REDIRECTS = ("ReqRedir", "CmpltRedir", "EgressCtrl")


def observe(facts: View) -> dict[str, list[str]] | Absent:
    reason = hypervisor(facts)
    if reason:
        return Absent(f"a hypervisor needs the isolation: {reason}")
    devices = facts["pci.devices"]
    above_gpus = {bridge for gpu in facts["pci.gpus"] for bridge in devices[gpu]["parents"]}
    return {
        bdf: [bit for bit in seen["enabled"] if bit in REDIRECTS]
        for bdf, seen in facts["pci.acs"].items()
        if seen["port"] == "downstream" and set(devices[bdf]["parents"][-1:]) & above_gpus
    }


CHECK = Check(
    needs=("pci.gpus", "pci.acs", *NEEDS),
    observe=observe,
    accept=Empty("no redirection on the ports of switches with GPUs"),
    applies=(BARE_METAL, GPU_ON_PCI, When("host.arch", Equals("x86_64"), "left as the firmware sets it on this CPU")),
    remedy=manual(
        "With the GPUs idle, for each port named: setpci -s BDF ECAP_ACS+0x6.w=0000. This is lost at the next boot: for "
        "good, add pci=disable_acs_redir=BDF;BDF;... with these ports to the kernel command line, or switch ACS off in the "
        "firmware set-up."
    ),
    severity="high",
)
