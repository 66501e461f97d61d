"""NCCL_IB_HCA or UCX_NET_DEVICES does not match this host.

Why it matters: Leaving out an adapter silently halves the bandwidth. Including a storage or management port can hang
the start of a job. Without = at the very start, every token is a prefix: mlx5_1 also matches mlx5_10 to mlx5_19. A name
from another node type matches nothing, and NCCL falls back to TCP.
Healthy exception: Excluding the ports of another role (^=) leaves those for jobs. A prefix (mlx5) may match ports without a cable.
Confirm manually: rdma link; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET all_reduce_perf -b 8 -e 8 -g 1 | grep NET/IB
Side effects of the fix: New jobs use other adapters. Run a bandwidth test between two nodes. apply removes the line where it
selects nothing and the host has as many active ports as GPUs, of one kind and rate: then NCCL takes these.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-hca ;
https://github.com/NVIDIA/nccl (src/transport/net_ib/init.cc, src/misc/utils.cc)
"""

from typing import Any

from nodetune.api import RDMA, Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._adapters import only_one_choice, wrong
from nodetune.checks.shared.nccl_settings import problems


def wrong_adapters(facts: FactsView) -> Any:
    return wrong(facts["nccl.settings"], facts["rdma.ports"]) or []


def left_alone(facts: FactsView) -> dict[str, str]:
    def judge(setting: Any, _: Any) -> str:
        sure = only_one_choice(setting, facts["rdma.ports"], facts["gpu.count"])
        return "" if sure else "which adapters are for jobs, the site knows"

    return problems(facts["nccl.settings"], judge)


CHECK = Check(
    needs=("nccl.settings", "rdma.ports", "gpu.count"),
    observe=wrong_adapters,
    accept=Empty("unset, or exactly the compute adapters of this host"),
    applies=(RDMA,),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="List the compute adapters (rdma link: those near the GPUs, at full rate) and write =mlx5_0,mlx5_1,... with the = "
        "first. In nccl.conf the line is NCCL_IB_HCA==mlx5_0,mlx5_1. Without the line NCCL uses every active port."
    ),
    severity="high",
)
