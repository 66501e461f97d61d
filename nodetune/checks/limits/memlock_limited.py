"""The memlock limit is too low for RDMA.

Why it matters: RDMA registers buffers by locking them in memory, and the kernel counts them against this limit. With
the usual 8 MiB, a job fails at its first large buffer (ibv_reg_mr or ibv_create_qp failed), or NCCL falls back to TCP.
PAM limits do not apply to services: slurmd has its own. With Slurm, jobs get slurmd's hard limit, and by default
(PropagateResourceLimits) the soft limit of the session that submitted them. A separate check covers Docker's
containers. Pods that use RDMA have CAP_IPC_LOCK, which overrides the limit.
Healthy exception: Pods that use RDMA have CAP_IPC_LOCK, which overrides the limit.
Confirm manually: grep locked /proc/$(pidof slurmd)/limits; ulimit -l
Side effects of the fix: A user may lock all memory. Running sessions, jobs and containers keep the old limit.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://github.com/Azure/azhpc-images (components/hpc-tuning.sh)
"""

from __future__ import annotations

from typing import Any

from nodetune.api import RDMA, Check, Equals, Fact, FactsView, limit
from nodetune.checks.shared.limit_sides import WORK, cause, limits_for, logins


def observe(facts: FactsView) -> Fact | dict[str, Any]:
    return limits_for(facts, "memlock", subjects=("slurmd", *logins(facts)))


CHECK = Check(
    needs=("limits.memlock", *WORK),
    observe=observe,
    cause=cause("memlock"),
    accept=Equals("unlimited"),
    set="unlimited",
    applies=(RDMA,),
    unit="bytes",
    remedy=limit("memlock"),
    severity="high",
)
