"""The open files limit (nofile) is too low.

Why it matters: Every connection between ranks, every shard of a data set and every worker uses descriptors. One process
of a 144-rank NCCL job can need more than 32,000. Beyond the limit it fails with "Too many open files".
Confirm manually: ulimit -n; grep 'open files' /proc/$(pidof slurmd)/limits
Side effects of the fix: Programs that use select() break only if they open more than 1024 files themselves. Old programs
that close every possible descriptor when they start another one (Python 2) take longer to do so.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://github.com/Azure/azhpc-images (components/hpc-tuning.sh) ;
https://0pointer.net/blog/file-descriptor-limits.html (why the soft limit is 1024)
"""

from __future__ import annotations

from typing import Any

from nodetune.api import GPU_ON_PCI, AtLeast, Check, Fact, FactsView, limit
from nodetune.checks.shared.limit_sides import RAISED_BY_ITSELF, WORK, cause, limits_for, logins


def observe(facts: FactsView) -> Fact | dict[str, Any]:
    """Return the soft limit, and for container engines the hard limit."""
    soft, hard = (
        limits_for(facts, "nofile", "soft", ("slurmd", *logins(facts))),
        limits_for(facts, "nofile", "hard", RAISED_BY_ITSELF),
    )
    return {**soft, **hard} if isinstance(soft, dict) and isinstance(hard, dict) else soft


CHECK = Check(
    needs=("limits.nofile", *WORK),
    observe=observe,
    cause=cause("nofile"),
    ceiling="sysctl.fs.nr_open",
    accept=AtLeast(131072),
    set=1048576,
    applies=(GPU_ON_PCI,),
    remedy=limit("nofile"),
    severity="medium",
)
