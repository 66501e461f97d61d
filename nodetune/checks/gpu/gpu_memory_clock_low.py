"""A GPU's memory clock is below its maximum in the highest performance state.

Why it matters: Memory bandwidth falls with it, and most training and inference kernels live from bandwidth. A lock of
the memory clock is the usual cause; a deferred one survives reboots.
Confirm by hand: nvidia-smi --query-gpu=index,pstate,clocks.mem,clocks.max.mem --format=csv
Side effects of the fix: None that is known; a deferred lock goes away with the next GPU reset.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.conditions import GPU
from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import gpu
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    states = facts["gpu.performance_state"]
    return {name: clock for name, clock in facts["gpu.clock_info.memory"].items() if states.get(name) == 0}


CHECK = Check(
    needs=("gpu.performance_state", "gpu.clock_info.memory"),
    observe=observe,
    accept=AtLeast(Ref("gpu.max_clock_info.memory")),
    set="none",
    unit="MHz",
    applies=(GPU,),
    remedy=gpu("locked_memory_clocks"),
    severity="low",
)
