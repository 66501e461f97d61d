"""The driver lacks security fixes released for its branch.

Why it matters: NVIDIA's security bulletins list, for each branch, the first version with the fixes. Several of the
vulnerabilities let any local user become root; on a shared GPU node, that is every user. The table used for the
comparison carries its date. Branches between those of the table get no fixes at all; GeForce and RTX cards are not judged
by that, because they have release lines of their own, and neither is the driver of Windows that WSL uses.
Confirm manually: nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u
Side effects of the fix: A new driver requires all GPU programs to end, and usually a reboot. Fabric Manager must move
to the same version.
Sources: https://github.com/NVIDIA/product-security (bulletins 5821 and 5861 of 2026)
"""

import re

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu import _windows

OTHER_LINES = re.compile(r"RTX|GeForce|Quadro|TITAN")


def observe(facts: FactsView) -> str:
    _windows.only_linux(facts)
    driver, fixes = facts["gpu.driver_version"], data.drivers()["security"]
    branch = data.version(driver)[0]
    for fix in fixes:
        if branch == fix["branch"] and data.version(driver) < data.version(fix["fixed_in"]):
            return f"{driver}: fixed in {fix['fixed_in']} ({fix['bulletin']}, including {fix['cve']})"
    newest = max(fixes, key=lambda fix: fix["branch"])
    names = facts.readable("gpu.names", {}).values()
    if branch not in {fix["branch"] for fix in fixes} and branch < newest["branch"] and names:
        no_fix = f"{driver}: no fix in R{branch} ({newest['bulletin']}, including {newest['cve']})"
        return "" if all(OTHER_LINES.search(name) for name in names) else no_fix
    return ""


CHECK = Check(
    needs=("gpu.driver_version", "gpu.names", _windows.KERNEL),
    observe=observe,
    accept=Empty("a version with the fixes of the newest bulletin"),
    applies=(GPU,),
    remedy=manual(
        "Update the driver within its branch (or to a supported one), with the matching Fabric Manager, one drained node "
        "at a time, and reboot."
    ),
    severity="medium",
    name="driver",
    part_of=("gpu-driver-too-old", "gpu-driver-branch-ended"),
)
