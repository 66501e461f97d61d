"""A GPU's memory is within 5 °C of its highest operating temperature.

Why it matters: HBM that is too hot is refreshed more often and then slows the GPU down; over time it brings more bad
rows.
Confirm by hand: nvidia-smi -q -d TEMPERATURE | grep -i memory
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    limits = facts["gpu.temperature_threshold"]
    return {
        name: limits[name]["memory_max"] - now
        for name, now in facts["gpu.memory_temperature"].items()
        if "memory_max" in limits.get(name, {})
    }


CHECK = Check(
    needs=("gpu.memory_temperature", "gpu.temperature_threshold"),
    observe=observe,
    accept=AtLeast(5),
    unit="°C left",
    applies=(GPU,),
    remedy=manual("Check fans, filters, airflow or coolant and the inlet temperature; compare with the sibling GPUs."),
    severity="high",
)
