"""NVLinks of GPUs of the same model run at different speeds.

Why it matters: A link that trained at a lower rate carries less traffic. It slows the ring or tree that it is part of.
Confirm manually: nvidia-smi nvlink -s
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu._siblings import highest


def observe(facts: FactsView) -> dict[str, str]:
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
    remedy=manual(
        "Drain the node and reset all GPUs (nvidia-smi -r). If a link stays slow, open a case with the vendor."
    ),
    severity="medium",
)
