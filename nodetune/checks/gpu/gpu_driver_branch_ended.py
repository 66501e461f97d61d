"""The driver belongs to a branch that gets no more fixes.

Why it matters: NVIDIA ends the support of a branch on a published date; holes and bugs found later stay. The table
that is compared with carries its date: a branch newer than all in it passes.
Confirm by hand: nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u
Side effects of the fix: A new branch can need other CUDA, DCGM and Fabric Manager packages: try it on one node first.
Sources: https://docs.nvidia.com/datacenter/tesla/drivers/615/supported-drivers-and-cuda-toolkit-versions.html
"""

from nodetune import data
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    table = data.drivers()
    ends, today = table["branches"]["end_of_life"], str(table["as_of"])
    branch = data.version(facts["gpu.driver_version"])[0]
    if branch in ends:
        return f"R{branch}: support ended {ends[branch]}" if ends[branch] < today[:7] else ""
    return f"R{branch}: not among the supported branches of {today}" if branch < max(ends) else ""


CHECK = Check(
    needs=("gpu.driver_version",),
    observe=observe,
    accept=Empty("a branch that is supported"),
    applies=(GPU,),
    remedy=manual(
        "Move to a long-term or production branch (R580 until June 2028), one drained node first, and reboot."
    ),
    severity="medium",
)
