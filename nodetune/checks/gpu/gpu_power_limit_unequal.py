"""GPUs of one model have different power limits.

Why it matters: A collective runs at the pace of the slowest GPU: one GPU with a lower limit costs all of them. A
policy would have set all alike.
Confirm by hand: nvidia-smi --query-gpu=index,name,power.limit --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import show
from nodetune.checks.gpu._siblings import outliers
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    limits = facts["gpu.power_management_limit"]
    return {
        name: "" if common is None else f"{show.value(limits[name], 'mW')}, its siblings {show.value(common, 'mW')}"
        for name, common in outliers(limits, facts["gpu.names"]).items()
    }


CHECK = Check(
    needs=("gpu.power_management_limit", "gpu.names"),
    observe=observe,
    accept=Empty("the limit of its siblings"),
    applies=(GPU,),
    remedy=manual("nvidia-smi -i INDEX -pl WATTS with the limit of the other GPUs; find out what sets it at boot."),
    severity="medium",
)
