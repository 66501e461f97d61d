"""A value is read as something else than what it looks like, or not at all.

Why it matters: NCCL reads numbers as C does and stops at the first sign that is no digit: NCCL_BUFFSIZE=4M is four
bytes, NCCL_IB_TC=010 is eight, NCCL_P2P_DISABLE=true is zero. Words that it does not know it ignores in silence.
NCCL_NTHREADS counts CUDA threads of a block: 4, 8 or 16 are no multiple of 32, and NCCL uses 512 instead.
Confirm by hand: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV all_reduce_perf -b 8 -e 8 -g 1 | grep "set by environment to"
Side effects of the fix: The value begins to act as it was meant. Be sure that it still suits: the default is often best.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (src/misc/param.cc ncclLoadParam, src/graph/tuning.cc getNthreads)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import values
from nodetune.remedies import manual
from nodetune.view import View


def invalid_values(facts: View) -> Any:
    return values.invalid(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=invalid_values,
    accept=Empty("values that mean what they look like"),
    remedy=manual(
        "In the file and line named, write the value as proposed, or delete the line: the default then holds."
    ),
    severity="medium",
)
