"""The NVLink fabric of a GPU reports a fault.

Why it matters: The fabric carries traffic at reduced bandwidth, is rerouting, lost its manager or is configured
wrongly: collectives slow down or fail although every link seems up.
Confirm by hand: nvidia-smi -q | grep -A12 '    Fabric'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check, Fact
from nodetune.remedies import manual
from nodetune.view import View

HEALTHY = {
    "degraded_bandwidth": "no",
    "route_recovery": "no",
    "route_unhealthy": "no",
    "access_timeout_recovery": "no",
    "incorrect_configuration": "none",
}


def observe(facts: View) -> Fact:
    return each(facts, "gpu.fabric", _faults)


def _faults(fabric: dict[str, dict[str, str]]) -> list[str]:
    health = fabric["health"]
    return [
        f"{aspect.replace('_', ' ')}: {health[aspect]}"
        for aspect, good in HEALTHY.items()
        if health.get(aspect, good) != good
    ]


CHECK = Check(
    needs=("gpu.fabric",),
    observe=observe,
    accept=Empty("a healthy fabric"),
    applies=(GPU,),
    remedy=manual(
        "Read /var/log/fabricmanager.log (on multi-node NVLink systems the log of the switches' manager) and nvidia-smi nvlink "
        "-s -e; drain the node and reset all GPUs, then open a case with the vendor when it stays."
    ),
    severity="high",
)
