"""A fan of a GPU is controlled manually.

Why it matters: A program or a user took the fan from the card's own control, and it keeps the speed that they gave it when
the GPU gets hot. NVML warns that a speed set too low can destroy the GPU. A tool that follows the temperature itself
(a fan curve) is fine, so this is a hint.
Healthy exception: A server card has no fan of its own, and a fan at 100 % cannot be too slow.
Confirm manually: nvidia-settings -q GPUFanControlState; nvidia-smi --query-gpu=index,fan.speed,temperature.gpu --format=csv
Side effects of the fix: The fan may become louder or quieter.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceCommands.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_cards import FOR_DESKS

FULL = 100


def observe(facts: FactsView) -> dict[str, list[str]]:
    names, speeds = facts["gpu.names"], facts["gpu.fan_speed"]
    return {
        gpu: [
            f"fan {number} at {speed} %"
            for number, (policy, speed) in enumerate(zip(policies, speeds.get(gpu, ())))
            if policy == "manual" and speed < FULL
        ]
        for gpu, policies in facts["gpu.fan_policy"].items()
        if FOR_DESKS.search(names.get(gpu, ""))
    }


CHECK = Check(
    needs=("gpu.fan_policy", "gpu.fan_speed", "gpu.names"),
    observe=observe,
    accept=Empty("fans that the card controls"),
    applies=(GPU,),
    remedy=manual(
        "Look for the program that set it (nvidia-settings, LACT, a script), and end it. Then nvidia-settings -a "
        "GPUFanControlState=0 returns the fans to the control of the card; so does the next boot."
    ),
    severity="info",
    name="fan policy",
    cost="hardware",
)
