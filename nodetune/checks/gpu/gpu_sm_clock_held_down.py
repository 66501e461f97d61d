"""A clock setting holds a GPU's SM clock below its maximum.

Why it matters: The driver itself says that a setting (locked clocks or application clocks) is what limits the clock
now. One such GPU slows every collective that it takes part in.
Confirm by hand: nvidia-smi -q -d CLOCK,PERFORMANCE
Side effects of the fix: The GPU boosts to what power and temperature allow: draw and heat rise.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import gpu
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    now, most = facts["gpu.clock_info.sm"], facts["gpu.max_clock_info.sm"]
    return {
        name: f"{now[name]} of {most[name]} MHz"
        if "applications_clocks_setting" in reasons and now.get(name, 0) < most.get(name, 0)
        else ""
        for name, reasons in facts["gpu.clocks_event_reasons"].items()
    }


CHECK = Check(
    needs=("gpu.clocks_event_reasons", "gpu.clock_info.sm", "gpu.max_clock_info.sm"),
    observe=observe,
    accept=Empty("no setting that holds the clock down"),
    set="none",
    applies=(GPU,),
    remedy=gpu("locked_clocks"),
    severity="medium",
)
