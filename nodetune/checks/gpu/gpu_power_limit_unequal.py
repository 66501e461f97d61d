"""GPUs of the same model have different power limits.

Why it matters: A collective runs at the pace of the slowest GPU, so one GPU with a lower limit slows all of them. A
deliberate policy would give all GPUs the same limit.
Confirm manually: nvidia-smi --query-gpu=index,name,power.limit --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu._peers import outliers
from nodetune.foundation import text


def observe(facts: FactsView) -> dict[str, str]:
    limits = facts["gpu.power_management_limit"]
    return {
        name: "" if common is None else f"{text.value(limits[name], 'mW')}, its peers {text.value(common, 'mW')}"
        for name, common in outliers(limits, facts["gpu.names"]).items()
    }


CHECK = Check(
    needs=("gpu.power_management_limit", "gpu.names"),
    observe=observe,
    accept=Empty("the limit of its peers"),
    applies=(GPU,),
    remedy=manual(
        "nvidia-smi -i INDEX -pl WATTS with the limit of the other GPUs. Find out what sets the limit at boot."
    ),
    severity="medium",
)
