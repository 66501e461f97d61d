"""NCCL tuning is forced for every job of the node.

Why it matters: The user guide lists these settings under Debugging: for experiments, not for permanent use. NCCL
selects algorithm, protocol, threads, channels and buffers for the hardware and the message size. A value that was once
fastest limits newer releases, and since 2.24 an algorithm that NCCL cannot use fails the job. Raising NCCL_NTHREADS for
"more CPU threads" is a mistake (they are CUDA threads, 512 by default). NCCL_BUFFSIZE is 4 MiB by default.
Confirm manually: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV,TUNING all_reduce_perf -b 1G -e 1G -g 8 | grep "set by environment"
Side effects of the fix: Performance changes, mostly for the better. Measure all_reduce before and after at several
sizes.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging ;
https://github.com/NVIDIA/nccl (src/init.cc, src/graph/tuning.cc)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.nccl._effects import forced


def forced_tuning(facts: FactsView) -> Any:
    return forced(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=forced_tuning,
    accept=Empty("tuning left to NCCL"),
    remedy=manual("Delete the named line, or move it into the script of the job that a measurement shows to need it."),
    severity="low",
    part_of="nccl-value-invalid",
)
