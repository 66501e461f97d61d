"""GPU memory is within 5 °C of its maximum operating temperature.

Why it matters: HBM that is too hot is refreshed more often, and then the GPU slows down. Over time, heat causes more
bad rows.
Healthy exception: Many cards report no temperature of their memory.
Confirm manually: nvidia-smi -q -d TEMPERATURE | grep -i memory
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, AtLeast, Check, FactsView, manual


def observe(facts: FactsView) -> dict[str, int]:
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
    remedy=manual(
        "Check fans, filters, airflow or coolant and the inlet temperature. Compare with the other GPUs of the host."
    ),
    severity="high",
    name="below the limit of its memory",
    cost="hardware",
)
