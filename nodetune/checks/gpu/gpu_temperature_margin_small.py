"""A GPU is within 5 °C of the temperature at which it slows down.

Why it matters: The next warm hour or heavier kernel makes it throttle, and the whole job with it. Newer GPUs tell the
margin themselves; for older ones it is the maximum operating temperature less the present one.
Confirm by hand: nvidia-smi -q -d TEMPERATURE
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
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
    remedy=manual("Check fans, filters, airflow or coolant and the inlet temperature; compare with the sibling GPUs."),
    severity="high",
)
