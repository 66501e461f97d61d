"""The driver branch is no longer supported.

Why it matters: NVIDIA ends the support of a branch on a published date. Vulnerabilities and bugs found later are not
fixed. The table used for the comparison carries its date: a branch newer than all branches in it passes.
Confirm manually: nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u
Side effects of the fix: A new branch can need other CUDA, DCGM and Fabric Manager packages: try it on one node first.
Sources: https://docs.nvidia.com/datacenter/tesla/drivers/615/supported-drivers-and-cuda-toolkit-versions.html
"""

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> str:
    table = data.drivers()
    ends, today = table["branches"]["end_of_life"], str(table["as_of"])
    branch = data.version(facts["gpu.driver_version"])[0]
    if branch in ends:
        return f"R{branch}: support ended {ends[branch]}" if ends[branch] < today[:7] else ""
    return f"R{branch}: not among the supported branches of {today}" if branch < max(ends) else ""


CHECK = Check(
    needs=("gpu.driver_version",),
    observe=observe,
    accept=Empty("a supported branch"),
    applies=(GPU,),
    remedy=manual(
        "Move to a long-term or production branch (R580 until June 2028) and reboot. Start with one drained node."
    ),
    severity="medium",
)
