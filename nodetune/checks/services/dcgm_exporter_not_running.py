"""DCGM's exporter is not running.

Why it matters: The exporter brings throttling, ECC and NVLink errors of each GPU to Prometheus. The host engine alone shows them
only to a user who asks. The check is off: a site that monitors with this exporter switches it on.
Confirm manually: pgrep -a dcgm-exporter; curl -s localhost:9400/metrics | head
Side effects of the fix: Another client of every GPU: stop it before a MIG mode change or a GPU reset.
Sources: https://github.com/NVIDIA/dcgm-exporter ;
https://docs.nvidia.com/datacenter/dcgm/latest/gpu-telemetry/dcgm-exporter.html
"""

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> str:
    return "running" if "dcgm-exporter" in facts["services.processes"] else "not running"


CHECK = Check(
    needs=("services.processes",),
    observe=observe,
    accept=Equals("running"),
    applies=(GPU_ON_PCI, NOT_CONTAINER),
    remedy=manual(
        "Run NVIDIA's image nvcr.io/nvidia/k8s/dcgm-exporter on the node (on Kubernetes, the GPU operator does), or the package "
        "datacenter-gpu-manager-exporter with its unit nvidia-dcgm-exporter."
    ),
    severity="low",
    part_of="dcgm-not-running",
)
