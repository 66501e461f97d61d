"""SM clocks of busy GPUs of one model differ by more than 5 %.

Why it matters: A collective waits for the slowest GPU. The check compares only GPUs that currently draw at least half
of their power limit, because idle GPUs lower their clocks, and none that runs into its power limit: chips differ in
the clock that they reach there.
Confirm manually: nvidia-smi --query-gpu=index,clocks.sm,power.draw,clocks_event_reasons.active --format=csv
Side effects of the fix: None: it only reports.
Sources: https://github.com/stas00/ml-engineering (A100 at 1155 against 1410 MHz) ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_peers import highest

SPREAD = 0.95
BUSY = 0.5


def observe(facts: FactsView) -> dict[str, str]:
    draw, limit, models = facts["gpu.power_usage"], facts["gpu.enforced_power_limit"], facts["gpu.names"]
    reasons = facts.readable("gpu.clocks_event_reasons", {})
    clocks = {
        name: clock
        for name, clock in facts["gpu.clock_info.sm"].items()
        if "sw_power_cap" not in reasons.get(name, []) and name in limit and draw.get(name, 0) >= BUSY * limit[name]
    }
    best = highest(clocks, models)
    return {
        name: f"{clock} MHz, a busy peer {best[name]} MHz" if clock < best[name] * SPREAD else ""
        for name, clock in clocks.items()
    }


CHECK = Check(
    needs=(
        "gpu.clock_info.sm",
        "gpu.power_usage",
        "gpu.enforced_power_limit",
        "gpu.names",
        "gpu.clocks_event_reasons",
    ),
    observe=observe,
    accept=Empty("within 5 % of its peers"),
    applies=(GPU,),
    remedy=manual(
        "Audit again with the same load on all GPUs. Then compare nvidia-smi -q -d PERFORMANCE,CLOCK,POWER of the "
        "slow GPU with its peers: power limit, locked clocks, temperature."
    ),
    severity="medium",
    cost="bandwidth",
)
