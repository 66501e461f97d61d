"""The memory clock of a GPU is below its maximum.

Why it matters: Memory bandwidth falls with the memory clock, and most training and inference kernels depend on it. The
usual cause is a locked memory clock; a deferred lock survives reboots. The check judges only GPUs in the highest
performance state. It tolerates one per cent: NVML reports 5000 of 5001 MHz on a healthy T4.
Confirm manually: nvidia-smi --query-gpu=index,pstate,clocks.mem,clocks.max.mem --format=csv
Side effects of the fix: None known. A deferred lock ends with the next GPU reset.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, gpu

TOLERANCE = 0.99


def observe(facts: FactsView) -> dict[str, str]:
    states, most = facts["gpu.performance_state"], facts["gpu.max_clock_info.memory"]
    return {
        name: f"{clock} of {most[name]} MHz" if clock < most[name] * TOLERANCE else ""
        for name, clock in facts["gpu.clock_info.memory"].items()
        if states.get(name) == 0 and name in most
    }


CHECK = Check(
    needs=("gpu.performance_state", "gpu.clock_info.memory", "gpu.max_clock_info.memory"),
    observe=observe,
    accept=Empty("the maximum"),
    set="none",
    applies=(GPU,),
    remedy=gpu("locked_memory_clocks"),
    severity="low",
)
