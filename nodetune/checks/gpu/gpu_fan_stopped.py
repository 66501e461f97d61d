"""A fan of a warm GPU has stopped.

Why it matters: Cards with their own fans may stop them when cold. At 60 °C and more, a fan at 0 % is broken or
blocked, and the card will throttle.
Confirm manually: nvidia-smi --query-gpu=index,fan.speed,temperature.gpu --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual

WARM = 60


def observe(facts: FactsView) -> dict[str, list[str]]:
    temperatures = facts["gpu.temperature"]
    return {
        name: [
            f"fan {number}"
            for number, percent in enumerate(speeds)
            if percent == 0 and temperatures.get(name, 0) >= WARM
        ]
        for name, speeds in facts["gpu.fan_speed"].items()
    }


CHECK = Check(
    needs=("gpu.fan_speed", "gpu.temperature"),
    observe=observe,
    accept=Empty("all fans turning"),
    applies=(GPU,),
    remedy=manual("Inspect the card: clear the fan or replace it."),
    severity="medium",
)
