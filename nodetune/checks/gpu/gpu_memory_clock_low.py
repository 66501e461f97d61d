"""The memory clock of a GPU is below its maximum.

Why it matters: Memory bandwidth falls with the memory clock, and most training and inference kernels depend on it. The
usual cause is a locked memory clock; a deferred lock survives reboots. The check judges only GPUs in the highest
performance state. It tolerates one per cent: NVML reports 5000 of 5001 MHz on a healthy T4. If
all GPUs of the host have the same clock, that is a decision: see gpu-clocks-limited. So is a lock that nodetune keeps
because the site declares it (gpu-memory-clock-unwanted).
Confirm manually: nvidia-smi --query-gpu=index,pstate,clocks.mem,clocks.max.mem --format=csv
Side effects of the fix: None known. A deferred lock ends with the next GPU reset.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, Empty, FactAbsentError, FactsView, gpu
from nodetune.checks.gpu._clock_setting import MEMORY_TOLERANCE, below_alike, judged_memory_clocks
from nodetune.checks.gpu._declared import LOCK_NEEDS, held_by_us


def observe(facts: FactsView) -> dict[str, str]:
    clocks, most = judged_memory_clocks(facts), facts["gpu.max_clock_info.memory"]
    if below_alike(clocks, most, MEMORY_TOLERANCE):
        raise FactAbsentError("one memory clock on all GPUs: a decision")
    ours = held_by_us(facts, "locked_memory_clocks", clocks)
    return {
        name: f"{clock} of {most[name]} MHz" if clock < most[name] * MEMORY_TOLERANCE and name not in ours else ""
        for name, clock in clocks.items()
    }


CHECK = Check(
    needs=("gpu.performance_state", "gpu.clock_info.memory", "gpu.max_clock_info.memory", *LOCK_NEEDS),
    observe=observe,
    accept=Empty("the maximum"),
    set="none",
    applies=(GPU,),
    remedy=gpu("locked_memory_clocks"),
    severity="low",
    name="memory clock",
)
