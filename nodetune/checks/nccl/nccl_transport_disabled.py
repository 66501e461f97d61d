"""A fast NCCL transport is disabled for the whole node.

Why it matters: Each of these settings was once made to find a fault. They take NVLink, RDMA, GPUDirect, shared memory
or NVLink SHARP from every later job. Without InfiniBand, traffic between nodes uses TCP, typically ten times slower or
worse. Without peer-to-peer, traffic inside the node goes through host memory. Jobs run without any message.
Healthy exception: A host without the path loses nothing. GeForce without NVLink has neither P2P nor RDMA, and Hugging Face
Accelerate demands both settings there. NVLink SHARP needs Hopper or newer, NVSwitches, and more than two GPUs (up to NCCL
2.28.3). NVLink between hosts needs a rack of Grace systems, PXN needs RDMA ports, NVB GPUs that are not all linked.
Confirm manually: NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8 | grep -E "via|NVLS|using network"
Side effects of the fix: NCCL uses the fast transport again. If it was disabled because of a fault, find out whether the
fault is fixed (P2P and ACS, NVLS and Fabric Manager, IB and the links). A job may fail or hang where it ran slowly
before.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc, src/transport/nvls.cc, src/transport/shm.cc, src/mnnvl.cc by tag) ;
https://github.com/huggingface/accelerate/issues/2328
"""

from __future__ import annotations

from nodetune.api import Check, Empty, manual
from nodetune.checks.nccl._lost import NEEDS, lost

STEPS = (
    "Delete the named line (the default is right), and run a bandwidth test before and after. Keep it only as a "
    "waiver that names the fault it works around."
)


CHECK = Check(
    needs=NEEDS,
    observe=lost,
    accept=Empty("no fast transport disabled"),
    remedy=manual(STEPS),
    severity="high",
    cost="bandwidth",
)
