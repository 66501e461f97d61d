"""A fast NCCL transport is disabled for the whole node.

Why it matters: Each of these settings was once made to find a fault. They take NVLink, RDMA, GPUDirect, shared memory
or NVLink SHARP from every later job. Without InfiniBand, traffic between nodes uses TCP, typically ten times slower or
worse. Without peer-to-peer, traffic inside the node goes through host memory. Jobs run without any message.
Healthy exception: A host without RDMA loses nothing by NCCL_IB_DISABLE=1.
Confirm manually: NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8 | grep -E "via|NVLS|using network"
Side effects of the fix: NCCL uses the fast transport again. If it was disabled because of a fault, find out whether the
fault is fixed (P2P and ACS, NVLS and Fabric Manager, IB and the links). A job may fail or hang where it ran slowly
before.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.nccl._effects import has_efa, lost_paths


def disabled(facts: FactsView) -> Any:
    has = {"rdma": bool(facts.get("rdma.ports", {})), "efa": has_efa(facts.readable("nccl.plugins", []))}
    return lost_paths(facts["nccl.settings"], has) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.plugins", "rdma.ports"),
    observe=disabled,
    accept=Empty("no fast transport disabled"),
    remedy=manual(
        "Delete the named line (the default is right), and run a bandwidth test before and after. Keep it only as a "
        "waiver that names the fault it works around."
    ),
    severity="high",
    cost="bandwidth",
)
