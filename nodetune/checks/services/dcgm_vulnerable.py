"""DCGM or its exporter lacks security fixes.

Why it matters: The exporter answers every client that reaches its port. Requests for its profiles make it use all memory and CPU
time, and show what is in it (CVE-2026-47483). NVIDIA builds these packages for all distributions, so the version says enough. The
table used for the comparison carries its date.
Confirm manually: dpkg-query -W 'datacenter-gpu-manager*' || rpm -qa 'datacenter-gpu-manager*'
Side effects of the fix: The services restart; metrics have a gap of seconds.
Sources: https://github.com/NVIDIA/product-security/tree/main/2026/5857
"""

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.shared import floors

NAMES = ("datacenter-gpu-manager", "datacenter-gpu-manager-4-core", "datacenter-gpu-manager-exporter")
PROGRAMS = {"nv-hostengine", "dcgm-exporter"}


def observe(facts: FactsView) -> dict[str, str]:
    if not PROGRAMS & set(facts["services.processes"]):
        raise FactAbsentError("DCGM is not running")
    return floors.packages(facts, NAMES)


CHECK = Check(
    needs=("services.processes", floors.PACKAGES),
    observe=observe,
    accept=Empty("a version with the fixes of the newest bulletin"),
    applies=(GPU_ON_PCI, NOT_CONTAINER),
    remedy=manual("Update these packages from NVIDIA's repository, and restart nvidia-dcgm and nvidia-dcgm-exporter."),
    severity="low",
)
