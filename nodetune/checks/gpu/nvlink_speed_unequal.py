"""NVLinks of alike GPUs run at different speeds.

Why it matters: A link that came up at a lower rate carries less and slows the ring or tree that it is part of.
Confirm by hand: nvidia-smi nvlink -s
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.checks.gpu._siblings import highest
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    speeds, models = facts["gpu.nvlink_speed"], facts["gpu.names"]
    best = highest({name: max(map(int, links)) for name, links in speeds.items()}, models)
    found = {}
    for name, links in speeds.items():
        slow = [f"{count} at {speed}" for speed, count in links.items() if int(speed) < best[name]]
        found[name] = f"{', '.join(slow)}, the others at {best[name]} MB/s" if slow else ""
    return found


CHECK = Check(
    needs=("gpu.nvlink_speed", "gpu.names"),
    observe=observe,
    accept=Empty("one speed on all links"),
    applies=(GPU,),
    remedy=manual("Drain the node and reset all GPUs (nvidia-smi -r); a link that stays slow goes to the vendor."),
    severity="medium",
)
