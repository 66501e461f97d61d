"""An NVLink runs slower than its model should, or slower than its peers.

Why it matters: A link that trained at a lower rate carries less traffic. It slows the ring or tree that it is part of.
Where the rate of the model is known, links that are all equally slow count too.
Confirm manually: nvidia-smi nvlink -s
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_peers import highest

TOLERANCE = 0.9
"""Drivers report 50,000 or 53,125 MB/s for the same link."""


def observe(facts: FactsView) -> dict[str, str]:
    speeds, models, devices = facts["gpu.nvlink_speed"], facts["gpu.names"], facts.readable("gpu.pci_device_id", {})
    best = highest({name: max(map(int, links)) for name, links in speeds.items()}, models)
    found = {}
    for name, links in speeds.items():
        rated = data.gpu(devices.get(name, "")).get("nvlink_mb_s", 0)
        wanted = rated if best[name] < rated * TOLERANCE else best[name]
        slow = [f"{count} at {speed}" for speed, count in links.items() if int(speed) < wanted]
        found[name] = f"{', '.join(slow)} instead of {wanted} MB/s" if slow else ""
    return found


CHECK = Check(
    needs=("gpu.nvlink_speed", "gpu.names", "gpu.pci_device_id"),
    observe=observe,
    accept=Empty("full speed on all links"),
    applies=(GPU,),
    remedy=manual(
        "Drain the node and reset all GPUs (nvidia-smi -r). If a link stays slow, open a case with the vendor."
    ),
    severity="medium",
    cost="bandwidth",
)
