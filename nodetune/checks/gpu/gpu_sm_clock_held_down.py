"""A clock setting limits the SM clock of a GPU.

Why it matters: The driver reports that a setting (locked clocks or application clocks) keeps the SM clock below its
maximum. One such GPU slows every collective that it takes part in.
Confirm manually: nvidia-smi -q -d CLOCK,PERFORMANCE
Side effects of the fix: The GPU boosts to what power and temperature allow: power draw and heat rise.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, gpu


def observe(facts: FactsView) -> dict[str, str]:
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
    accept=Empty("no setting that limits the clock"),
    set="none",
    applies=(GPU,),
    remedy=gpu("locked_clocks"),
    severity="medium",
)
