"""The NVLink fabric of a GPU reports a fault.

Why it matters: The fabric runs at reduced bandwidth, is rerouting, has lost its manager or is misconfigured.
Collectives slow down or fail although every link looks up.
Healthy exception: Drivers that do not report an aspect of the fabric's health leave it out.
Confirm manually: nvidia-smi -q | grep -A12 '    Fabric'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html
"""

from nodetune.api import GPU, Check, Empty, Fact, FactsView, repair
from nodetune.checks.gpu._each import each

HEALTHY = {
    "degraded_bandwidth": "no",
    "route_recovery": "no",
    "route_unhealthy": "no",
    "access_timeout_recovery": "no",
    "incorrect_configuration": "none",
}


def observe(facts: FactsView) -> Fact:
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
    remedy=repair(
        "Read /var/log/fabricmanager.log (on multi-node NVLink systems, the log of the switch manager) and nvidia-smi "
        "nvlink -s -e. Drain the node and reset all GPUs. If the fault stays, open a case with the vendor."
    ),
    severity="high",
)
