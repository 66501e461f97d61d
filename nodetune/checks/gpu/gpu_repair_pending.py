"""A repair of a GPU's memory channels or cores is pending.

Why it matters: The GPU found a bad part that it can replace with a spare. Only a reset makes the replacement. Until
then the GPU runs with the bad part.
Confirm manually: nvidia-smi -q -d ECC | grep -i repair
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, Fact, FactsView, manual
from nodetune.checks.gpu._each import each


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.repair_pending", lambda repairs: [part for part, due in repairs.items() if due])


CHECK = Check(
    needs=("gpu.repair_pending",),
    observe=observe,
    accept=Empty("no repair pending"),
    applies=(GPU,),
    remedy=manual("When the node is idle: drain it and reset the GPU (nvidia-smi -r), or reboot."),
    severity="medium",
    name="repair pending",
    part_of=("gpu-recovery-needed", "gpu-memory-unrepairable", "gpu-xid-hardware", "gpu-reset-due"),
    cost="hardware",
)
