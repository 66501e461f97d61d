"""A fan of a warm GPU stands still.

Why it matters: Cards with fans of their own may stop them when cold; at 60 °C and more a fan at 0 % is broken or
blocked, and the card will throttle.
Confirm by hand: nvidia-smi --query-gpu=index,fan.speed,temperature.gpu --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

WARM = 60


def observe(facts: View) -> dict[str, list[str]]:
    warmth = facts["gpu.temperature"]
    return {
        name: [f"fan {number}" for number, percent in enumerate(speeds) if percent == 0 and warmth.get(name, 0) >= WARM]
        for name, speeds in facts["gpu.fan_speed"].items()
    }


CHECK = Check(
    needs=("gpu.fan_speed", "gpu.temperature"),
    observe=observe,
    accept=Empty("all fans turning"),
    applies=(GPU,),
    remedy=manual("Look at the card: clear the fan or replace it."),
    severity="medium",
)
