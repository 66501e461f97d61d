"""The NVIDIA Container Toolkit lacks security fixes.

Why it matters: The toolkit runs as root whenever a container starts. Its faults let the image of a container become root on the
host, as CVE-2025-23266 and CVE-2026-24260. NVIDIA builds its packages for all distributions, so the version says enough. The
table used for the comparison carries its date.
Confirm manually: nvidia-ctk --version; dpkg-query -W nvidia-container-toolkit || rpm -q nvidia-container-toolkit
Side effects of the fix: New containers use the new version; running ones are not touched.
Sources: https://github.com/NVIDIA/product-security/tree/main/2026/5850
"""

from nodetune.api import CONTAINERS, Check, Empty, FactsView, manual
from nodetune.checks.shared import floors


def observe(facts: FactsView) -> str:
    if facts["containers.toolkit"]["runtime"] is None and facts["containers.toolkit"]["ctk"] is None:
        return ""
    return floors.packages(facts, ("nvidia-container-toolkit",))["nvidia-container-toolkit"]


CHECK = Check(
    needs=("containers.toolkit", floors.PACKAGES),
    observe=observe,
    accept=Empty("a version with the fixes of the newest bulletin"),
    applies=(CONTAINERS,),
    remedy=manual(
        "Update nvidia-container-toolkit with libnvidia-container from NVIDIA's repository. On Kubernetes the GPU Operator "
        "brings it: update the operator."
    ),
    severity="medium",
    name="container toolkit",
)
