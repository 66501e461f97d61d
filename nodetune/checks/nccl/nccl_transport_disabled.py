"""A fast path of NCCL is switched off for the whole node.

Why it matters: Each of these was set once to find a fault, and takes NVLink, RDMA, GPUDirect, shared memory or NVLink
SHARP from every job ever after. Without InfiniBand, traffic between nodes goes through TCP, typically ten times slower
or worse; without peer-to-peer, traffic inside the node goes through host memory. Jobs run and say nothing.
Confirm by hand: NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8 | grep -E "via|NVLS|using network"
Side effects of the fix: The fast path is used again. If it was switched off because of a fault, find out whether that
is mended (P2P and ACS, NVLS and the fabric manager, IB and the links): a job may fail or hang where it crept before.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import effects
from nodetune.remedies import manual
from nodetune.view import View


def lost_paths(facts: View) -> Any:
    has = {"rdma": bool(facts.get("rdma.ports", {})), "efa": effects.has_efa(facts.readable("nccl.plugins", []))}
    return effects.lost_paths(facts["nccl.settings"], has) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.plugins", "rdma.ports"),
    observe=lost_paths,
    accept=Empty("no fast path switched off"),
    remedy=manual(
        "Delete the line named (the default is right), then run a bandwidth test before and after. Keep it only as a "
        "waiver with the fault that it works around."
    ),
    severity="high",
)
