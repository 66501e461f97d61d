"""The memory clock of a GPU is below its maximum.

Why it matters: Memory bandwidth falls with the memory clock, and most training and inference kernels depend on it. The
usual cause is a locked memory clock; a deferred lock survives reboots. The check judges only GPUs in the highest
performance state.
Confirm manually: nvidia-smi --query-gpu=index,pstate,clocks.mem,clocks.max.mem --format=csv
Side effects of the fix: None known. A deferred lock ends with the next GPU reset.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, AtLeast, Check, FactsView, Ref, gpu


def observe(facts: FactsView) -> dict[str, int]:
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
