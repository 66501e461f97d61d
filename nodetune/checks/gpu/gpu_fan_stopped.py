"""A fan of a warm GPU has stopped.

Why it matters: Cards with their own fans may stop them when cold, some up to 60 °C and a little above. At 70 °C and more,
a fan at 0 % is broken or blocked, and the card will throttle. Server cards such as A10 and A40 have no fan of their own
and report 0 % all the time: only cards for workstations and desktops are judged.
Healthy exception: A server card without a fan of its own reports a fan at 0 %.
Confirm manually: nvidia-smi --query-gpu=index,fan.speed,temperature.gpu --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_cards import FOR_DESKS

WARM = 70


def observe(facts: FactsView) -> dict[str, list[str]]:
    temperatures, names = facts["gpu.temperature"], facts["gpu.names"]
    return {
        name: [f"fan {number}" for number, percent in enumerate(speeds) if percent == 0]
        if temperatures.get(name, 0) >= WARM
        else []
        for name, speeds in facts["gpu.fan_speed"].items()
        if FOR_DESKS.search(names.get(name, ""))
    }


CHECK = Check(
    needs=("gpu.fan_speed", "gpu.temperature", "gpu.names"),
    observe=observe,
    accept=Empty("all fans turning"),
    applies=(GPU,),
    remedy=manual("Inspect the card: clear the fan or replace it."),
    severity="medium",
    name="stopped",
    cost="hardware",
)
