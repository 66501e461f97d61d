"""The driver logged Xids that may announce a failing link or memory.

Why it matters: NVLink errors, contained memory errors and retirements are survived by the GPU and often end a job. A
few may mean nothing; many on the same GPU are the start of a fault.
Confirm by hand: journalctl -k -b | grep 'NVRM: Xid'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.checks.gpu._xids import SUSPECT, by_gpu
from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, list[str]] | list[str]:
    return by_gpu(facts["xid.events"], SUSPECT) or []


CHECK = Check(
    needs=("xid.events",),
    observe=observe,
    accept=Empty("no such Xid since the last reset"),
    applies=(GPU_ON_PCI,),
    remedy=manual(
        "Look the Xid up in NVIDIA's catalogue. For NVLink errors compare nvidia-smi nvlink -e on both ends; when they return "
        "on one GPU, drain the node, reset the GPU and run the vendor's diagnostic."
    ),
    severity="medium",
)
