"""NCCL is told not to use PCIe relaxed ordering in this virtual machine.

Why it matters: With passed-through InfiniBand cards, ordered writes limit GPUDirect RDMA below the card's rate. NCCL's default
(2) uses relaxed ordering where it can; Azure's images for GPU sizes set 1. A 0 is left over from old advice.
Confirm by hand: grep -r NCCL_IB_PCI_RELAXED_ORDERING /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None known with NCCL 2.12 and newer.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_IB_PCI_RELAXED_ORDERING) ;
https://github.com/Azure/azhpc-images
"""

from nodetune.conditions import RDMA, VIRTUAL
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

NAME = "NCCL_IB_PCI_RELAXED_ORDERING"


def observe(facts: View) -> list[str]:
    return [
        f"{NAME}=0 in {each['file']}"
        for each in facts["nccl.settings"]
        if each["name"] == NAME and each["value"] == "0"
    ]


CHECK = Check(
    needs=("nccl.settings",),
    observe=observe,
    accept=Empty(f"{NAME} unset, 1 or 2"),
    applies=(VIRTUAL, RDMA),
    remedy=manual(f"Remove the line with {NAME}=0 from the file named, or set it to 1."),
    severity="info",
)
