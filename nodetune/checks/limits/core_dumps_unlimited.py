"""Crashing programs write their whole memory to disk.

Why it matters: A training process holds hundreds of GiB of host memory. When it crashes with no limit on core files,
and the kernel writes them as plain files, the dump fills the disk or the shared file system, and each rank of a job
that fails together writes one.
Confirm by hand: ulimit -c; cat /proc/sys/kernel/core_pattern
Side effects of the fix: No core file unless a user raises the limit for a run that is to be debugged.
Sources: https://man7.org/linux/man-pages/man5/core.5.html
"""

from typing import Any

from nodetune.checks.limits._sides import seen
from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import AtMost
from nodetune.model import Check, Fact
from nodetune.remedies import limit
from nodetune.view import Missing, View


def observe(facts: View) -> Fact | dict[str, Any]:
    if str(facts["sysctl.kernel.core_pattern"]).startswith("|"):
        raise Missing("a program takes core dumps (kernel.core_pattern) and bounds them itself")
    return seen(facts, "core")


CHECK = Check(
    needs=("limits.core", "sysctl.kernel.core_pattern"),
    observe=observe,
    accept=AtMost(16 << 30),
    set=0,
    applies=(GPU_ON_PCI,),
    unit="bytes",
    remedy=limit("core"),
    severity="low",
)
