"""Processes may open too few files.

Why it matters: Every connection between ranks, every shard of a data set and every worker costs descriptors. One
process of a 144-rank NCCL job can need more than 32,000; beyond the limit it fails with "Too many open files".
Confirm by hand: ulimit -n; grep 'open files' /proc/$(pidof slurmd)/limits
Side effects of the fix: Programs that use select() break only if they open more than 1024 themselves.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://github.com/Azure/azhpc-images (components/hpc-tuning.sh)
"""

from typing import Any

from nodetune.checks.limits._sides import RAISED_BY_ITSELF, WORK, logins, seen
from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import AtLeast
from nodetune.model import Check, Fact
from nodetune.remedies import limit
from nodetune.view import View


def observe(facts: View) -> Fact | dict[str, Any]:
    """The soft limit; of engines the hard one."""
    soft, hard = (
        seen(facts, "nofile", "soft", ("slurmd", *logins(facts))),
        seen(facts, "nofile", "hard", RAISED_BY_ITSELF),
    )
    return {**soft, **hard} if isinstance(soft, dict) and isinstance(hard, dict) else soft


CHECK = Check(
    needs=("limits.nofile", *WORK),
    observe=observe,
    accept=AtLeast(131072),
    set=1048576,
    applies=(GPU_ON_PCI,),
    remedy=limit("nofile"),
    severity="medium",
)
