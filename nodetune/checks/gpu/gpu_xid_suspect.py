"""The driver logged Xids that may announce a hardware failure.

Why it matters: A GPU survives NVLink errors, contained memory errors and retirements, but they often end a job. A few
may mean nothing. Many on the same GPU are the start of a link or memory fault.
Confirm manually: journalctl -k -b | grep 'NVRM: Xid'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.gpu._recovered import NEEDS, require_gpu, standing
from nodetune.checks.gpu._xids import SUSPECT, by_gpu


def observe(facts: FactsView) -> dict[str, list[str]] | list[str]:
    require_gpu(facts, "xid.events")
    return by_gpu(standing(facts), SUSPECT) or []


CHECK = Check(
    needs=("xid.events", *NEEDS),
    observe=observe,
    accept=Empty("no such Xid since the last reset"),
    remedy=manual(
        "Look the Xid up in NVIDIA's catalogue. For NVLink errors, compare nvidia-smi nvlink -e on both ends. If they "
        "return on one GPU, drain the node, reset the GPU and run the vendor's diagnostic."
    ),
    severity="medium",
    part_of=("gpu-recovery-needed", "gpu-lost", "gpu-missing", "gpu-xid-hardware", "gpu-reset-due", "nvlink-down"),
    cost="hardware",
)
