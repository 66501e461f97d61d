"""A clock setting limits the clocks of all GPUs alike.

Why it matters: All GPUs of the host are held at one clock below their maximum. Sites do this on purpose, for energy or
for even results. The check reports it to explain slower results and changes nothing. It leaves out what nodetune keeps
because the site declares it (gpu-sm-clock-unwanted, gpu-memory-clock-unwanted).
Confirm manually: nvidia-smi -q -d CLOCK,PERFORMANCE
Side effects of the fix: Power draw and heat rise to what the GPUs allow.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu._clock_setting import (
    MEMORY_NEEDS,
    MEMORY_TOLERANCE,
    NEEDS,
    below_alike,
    held_down,
    is_decision,
    judged_memory_clocks,
)
from nodetune.checks.gpu._declared import LOCK_NEEDS, held_by_us


def observe(facts: FactsView) -> dict[str, str]:
    held = held_down(facts)
    ours = held_by_us(facts, "locked_clocks", facts["gpu.clock_info.sm"])
    if is_decision(facts, held):
        return held | dict.fromkeys(ours & set(held), "")
    setting = facts.readable("gpu.applications_clock.sm", {})
    applications = below_alike(setting, facts.readable("gpu.default_applications_clock.sm", {}))
    return applications or _memory(facts) or dict.fromkeys(held, "")


def _memory(facts: FactsView) -> dict[str, str]:
    """Return the memory clock of each GPU, if all have one below the maximum."""
    if any(facts.readable(name) is None for name in ("gpu.performance_state", *MEMORY_NEEDS)):
        return {}
    judged = judged_memory_clocks(facts)
    clocks = below_alike(judged, facts["gpu.max_clock_info.memory"], MEMORY_TOLERANCE)
    if held_by_us(facts, "locked_memory_clocks", judged) == set(judged):
        return {}
    return {name: f"memory {clock}" for name, clock in clocks.items()}


CHECK = Check(
    needs=(*NEEDS, *MEMORY_NEEDS, *LOCK_NEEDS),
    observe=observe,
    accept=Empty("no common limit"),
    applies=(GPU,),
    remedy=manual(
        "If this is not intended: nvidia-smi -rgc (memory: -rmc), and look for what locks the clocks at boot."
    ),
    severity="info",
)
