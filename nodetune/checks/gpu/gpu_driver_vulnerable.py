"""The driver lacks security fixes released for its branch.

Why it matters: NVIDIA's security bulletins list, for each branch, the first version with the fixes. Several of the
vulnerabilities let any local user become root; on a shared GPU node, that is every user. The table used for the
comparison carries its date.
Confirm manually: nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u
Side effects of the fix: A new driver requires all GPU programs to end, and usually a reboot. Fabric Manager must move
to the same version.
Sources: https://github.com/NVIDIA/product-security (bulletins 5821 and 5861 of 2026)
"""

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> str:
    driver = facts["gpu.driver_version"]
    for fix in data.drivers()["security"]:
        if data.version(driver)[0] == fix["branch"] and data.version(driver) < data.version(fix["fixed_in"]):
            return f"{driver}: fixed in {fix['fixed_in']} ({fix['bulletin']}, including {fix['cve']})"
    return ""


CHECK = Check(
    needs=("gpu.driver_version",),
    observe=observe,
    accept=Empty("a version with the fixes of the newest bulletin"),
    applies=(GPU,),
    remedy=manual(
        "Update the driver within its branch, with the matching Fabric Manager, one drained node at a time, and reboot."
    ),
    severity="medium",
)
