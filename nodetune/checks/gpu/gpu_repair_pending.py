"""A GPU has a repair of its memory channels or cores to make at the next reset.

Why it matters: The GPU found a part that it can replace by a spare one, which only a reset does. Until then it runs
with the bad part.
Confirm by hand: nvidia-smi -q -d ECC | grep -i repair
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check, Fact
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> Fact:
    return each(facts, "gpu.repair_pending", lambda repairs: [part for part, due in repairs.items() if due])


CHECK = Check(
    needs=("gpu.repair_pending",),
    observe=observe,
    accept=Empty("no repair pending"),
    applies=(GPU,),
    remedy=manual("At the next idle moment: drain the node and reset the GPU (nvidia-smi -r), or reboot."),
    severity="medium",
)
