"""A fast NCCL transport is disabled that this host may not have.

Why it matters: The setting takes the transport from jobs with another NCCL, in a virtual machine or on other hardware. The
finding says with what: NCCL has NVLink SHARP on two GPUs from 2.28.7 on, and containers bring an NCCL of their own.
Confirm manually: NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8 | grep -E "NCCL version|via|NVLS|using network"
Side effects of the fix: As of nccl-transport-disabled.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc, src/transport/nvls.cc by tag)
"""

from __future__ import annotations

from nodetune.api import Check, Empty, manual
from nodetune.checks.nccl._lost import NEEDS, lost
from nodetune.checks.nccl.nccl_transport_disabled import STEPS

CHECK = Check(
    needs=NEEDS,
    observe=lambda facts: lost(facts, sure=False),
    accept=Empty("no fast transport disabled that a job may have"),
    remedy=manual(STEPS),
    severity="low",
    cost="bandwidth",
)
