"""The choice of RDMA adapters for NCCL does not fit this host.

Why it matters: An adapter that is left out halves the bandwidth without a word; a storage or management port that is
taken in can hang the start of a job. Without = at the very start every token is a prefix: mlx5_1 also takes mlx5_10 to
mlx5_19. A name from another node type matches nothing, and NCCL falls back to TCP.
Confirm by hand: rdma link; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET all_reduce_perf -b 8 -e 8 -g 1 | grep NET/IB
Side effects of the fix: Jobs that start from then on use other adapters: run a bandwidth test between two nodes.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-hca ;
https://github.com/NVIDIA/nccl (src/transport/net_ib/init.cc, src/misc/utils.cc)
"""

from typing import Any

from nodetune.conditions import RDMA
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import adapters
from nodetune.remedies import manual
from nodetune.view import View


def wrong_adapters(facts: View) -> Any:
    return adapters.wrong(facts["nccl.settings"], facts["rdma.ports"]) or []


CHECK = Check(
    needs=("nccl.settings", "rdma.ports"),
    observe=wrong_adapters,
    accept=Empty("unset, or exactly the compute adapters of this host"),
    applies=(RDMA,),
    remedy=manual(
        "List the compute adapters (rdma link; those near the GPUs, at full rate) and write =mlx5_0,mlx5_1,... with the = "
        "first; in nccl.conf that gives NCCL_IB_HCA==mlx5_0,mlx5_1. Without the line NCCL takes every active port."
    ),
    severity="high",
)
