"""A GPU is within 5 °C of its slowdown temperature.

Why it matters: The next warm hour or heavier kernel makes the GPU throttle, and the whole job with it. Newer GPUs
report the margin. For older ones, the margin is the maximum operating temperature minus the current temperature.
Healthy exception: A GPU may report a large margin although its temperature is near an older limit.
Confirm manually: nvidia-smi -q -d TEMPERATURE
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, AtLeast, Check, FactsView, manual


def observe(facts: FactsView) -> dict[str, int]:
    margins = dict(facts.get("gpu.temperature_margin", {}))
    limits = facts.get("gpu.temperature_threshold", {})
    for name, now in facts["gpu.temperature"].items():
        limit = limits.get(name, {}).get("gpu_max", limits.get(name, {}).get("slowdown"))
        if name not in margins and limit is not None:
            margins[name] = limit - now
    return margins


CHECK = Check(
    needs=("gpu.temperature_margin", "gpu.temperature", "gpu.temperature_threshold"),
    observe=observe,
    accept=AtLeast(5),
    unit="°C",
    applies=(GPU,),
    remedy=manual(
        "Check fans, filters, airflow or coolant and the inlet temperature. Compare with the other GPUs of the host."
    ),
    severity="high",
    name="below its slowdown temperature",
    cost="hardware",
)
