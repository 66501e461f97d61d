"""The driver branch is no longer supported.

Why it matters: NVIDIA ends the support of a branch on a published date. Vulnerabilities and bugs found later are not
fixed. A version with the fixes of a bulletin that came later passes, and so do a new feature branch with a fix, of which
NVIDIA publishes no end, and a branch newer than all in the table, which carries its date. The driver of Windows, which WSL uses, has versions of its own and is not judged.
Confirm manually: nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u
Side effects of the fix: A new branch can need other CUDA, DCGM and Fabric Manager packages: try it on one node first.
Sources: https://docs.nvidia.com/datacenter/tesla/drivers/620/supported-drivers-and-cuda-toolkit-versions.html
"""

from collections.abc import Mapping
from typing import Any

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu import _windows


def observe(facts: FactsView) -> str:
    _windows.only_linux(facts)
    table = data.drivers()
    ends, today = {int(each): end for each, end in table["branches"]["end_of_life"].items()}, table["branches"]["as_of"]
    driver = data.version(facts["gpu.driver_version"])
    branch = driver[0]
    if any(driver >= data.version(fix["fixed_in"]) for fix in _later_fixes(table, branch, ends.get(branch, ""))):
        return ""
    if branch in ends:
        return f"R{branch}: support ended {ends[branch]}" if ends[branch] < today[:7] else ""
    known = any(fix["branch"] == branch for fix in table["security"])
    return f"R{branch}: not among the supported branches of {today}" if branch < max(ends) and not known else ""


def _later_fixes(table: Mapping[str, Any], branch: int, end: str) -> list[Mapping[str, Any]]:
    """Return the fixes that NVIDIA released for a branch after the end of its support."""
    return [fix for fix in table["security"] if fix["branch"] == branch and end and fix["month"] > end]


CHECK = Check(
    needs=("gpu.driver_version", _windows.KERNEL),
    observe=observe,
    accept=Empty("a supported branch"),
    applies=(GPU,),
    remedy=manual(
        "Move to a long-term or production branch (R580 until June 2028, R620 until September 2029) and reboot. Start with one drained node."
    ),
    severity="medium",
    name="driver",
    part_of="gpu-driver-too-old",
)
