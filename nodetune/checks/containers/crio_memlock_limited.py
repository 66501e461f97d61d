"""CRI-O limits locked memory below what RDMA needs.

Why it matters: default_ulimits in crio.conf sets the limit of every container. NCCL's first RDMA buffer fails (ibv_reg_mr
failed) in a pod without the capability IPC_LOCK. Without a line, a container inherits CRI-O's own limit
(containers-memlock-limited).
Confirm manually: crio config 2>/dev/null | grep -A3 default_ulimits
Side effects of the fix: CRI-O restarts; containers go on. New containers may lock all memory.
Sources: https://github.com/cri-o/cri-o/blob/main/docs/crio.conf.5.md ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from nodetune.api import CONTAINERS, RDMA, Check, FactAbsentError, FactsView, OneOf, engine_conf


def observe(facts: FactsView) -> str:
    """Return the soft limit, as it is written."""
    limit = facts["containers.crio"]["memlock"]
    if limit is None:
        raise FactAbsentError("crio.conf sets no limit of locked memory")
    return str(limit).partition(":")[0]


CHECK = Check(
    needs=("containers.crio",),
    observe=observe,
    accept=OneOf(["-1", "unlimited"]),
    applies=(CONTAINERS, RDMA),
    set="-1:-1",
    remedy=engine_conf("crio memlock"),
    severity="low",
)
