"""The driver lacks security fixes that are out for its branch.

Why it matters: NVIDIA's bulletins list, for each branch, the first version with the fixes. Several of the holes let
any local user become root, which on a shared GPU node is every user. The table that is compared with carries its date.
Confirm by hand: nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u
Side effects of the fix: A new driver needs all GPU programs ended, usually a reboot; Fabric Manager must move to the
same version.
Sources: https://github.com/NVIDIA/product-security (bulletins 5821 and 5861 of 2026)
"""

from nodetune import data
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    driver = facts["gpu.driver_version"]
    for fix in data.drivers()["security"]:
        if data.version(driver)[0] == fix["branch"] and data.version(driver) < data.version(fix["fixed_in"]):
            return f"{driver}: fixes came with {fix['fixed_in']} ({fix['bulletin']}, among them {fix['cve']})"
    return ""


CHECK = Check(
    needs=("gpu.driver_version",),
    observe=observe,
    accept=Empty("a version with the fixes of the newest bulletin"),
    applies=(GPU,),
    remedy=manual(
        "Update the driver within its branch (and Fabric Manager with it), one drained node at a time, and reboot."
    ),
    severity="medium",
)
