"""Tuning of NCCL is forced for every job of the node.

Why it matters: The user guide lists these under Debugging: for experiments, not to be kept. NCCL chooses algorithm,
protocol, threads, channels and buffers for the hardware and the message; a value that was fastest once holds newer
releases back, and since 2.24 an algorithm that cannot be met fails the job. Raising NCCL_NTHREADS to "more CPU threads"
rests on a mistake (they are CUDA threads, 512 by default), and NCCL_BUFFSIZE is 4 MiB without being told.
Confirm by hand: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV,TUNING all_reduce_perf -b 1G -e 1G -g 8 | grep "set by environment"
Side effects of the fix: Speed changes, mostly for the better: measure all_reduce before and after at several sizes.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging ;
https://github.com/NVIDIA/nccl (src/init.cc, src/graph/tuning.cc)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import effects
from nodetune.remedies import manual
from nodetune.view import View


def forced_tuning(facts: View) -> Any:
    return effects.forced(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=forced_tuning,
    accept=Empty("tuning left to NCCL"),
    remedy=manual("Delete the line named, or move it into the script of the one job that was measured to need it."),
    severity="low",
)
