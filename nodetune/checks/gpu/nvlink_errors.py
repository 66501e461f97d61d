"""A GPU's NVLinks had errors since the driver was loaded.

Why it matters: A link that repeats or retrains loses bandwidth each time and stalls collectives; many errors come
before a link goes down. The counters start anew with a driver load or a GPU reset: see whether they grow.
Confirm by hand: nvidia-smi nvlink -e
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFieldValueEnums.html ;
https://docs.nvidia.com/health-validation/reference/checks/nvlink
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check, Fact
from nodetune.remedies import manual
from nodetune.view import View

COUNTED = ("replay", "recovery", "link_recovery_failed")
"""What cost bandwidth. Flit CRC errors (A100) and symbol errors (Blackwell) are not zero on healthy links."""


def observe(facts: View) -> Fact:
    return each(facts, "gpu.nvlink_errors", _counts)


def _counts(kinds: dict[str, dict[str, int]]) -> list[str]:
    return [f"{kind} {sum(links.values())}" for kind, links in kinds.items() if kind in COUNTED and links]


CHECK = Check(
    needs=("gpu.nvlink_errors",),
    observe=observe,
    accept=Empty("no errors"),
    applies=(GPU,),
    remedy=manual(
        "Read nvidia-smi nvlink -e twice, some minutes apart, under load. Counters that grow: drain the node, reset the GPUs, "
        "and open a case with the vendor when they grow again."
    ),
    severity="medium",
)
