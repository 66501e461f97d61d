"""Processes may not lock the memory that RDMA needs.

Why it matters: RDMA registers buffers by locking them in memory, and the kernel counts that against this limit.
With the usual 8 MiB a job fails at its first large buffer (ibv_reg_mr or ibv_create_qp failed), or NCCL falls back to
TCP. PAM's limits do not reach services: slurmd has its own. Docker's containers are judged by a check of their own; pods
that use RDMA have CAP_IPC_LOCK, for which the limit does not count.
Confirm by hand: grep locked /proc/$(pidof slurmd)/limits; ulimit -l
Side effects of the fix: A user may lock all memory. Running sessions, jobs and containers keep the old limit.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://github.com/Azure/azhpc-images (components/hpc-tuning.sh)
"""

from typing import Any

from nodetune.checks.limits._sides import WORK, logins, seen
from nodetune.conditions import RDMA
from nodetune.expect import Equals
from nodetune.model import Check, Fact
from nodetune.remedies import limit
from nodetune.view import View


def observe(facts: View) -> Fact | dict[str, Any]:
    return seen(facts, "memlock", subjects=("slurmd", *logins(facts)))


CHECK = Check(
    needs=("limits.memlock", *WORK),
    observe=observe,
    accept=Equals("unlimited"),
    set="unlimited",
    applies=(RDMA,),
    unit="bytes",
    remedy=limit("memlock"),
    severity="critical",
)
