"""The core dump size is unlimited.

Why it matters: A training process uses hundreds of GiB of host memory. If it crashes without a limit on core files, and
the kernel writes them as plain files, the dump fills the disk or the shared file system. Each rank of a failing job
writes one. slurmd raises its own limit to the hard one, so it counts only where jobs get it: by default they get that of
the session that submitted them (PropagateResourceLimits).
Confirm manually: ulimit -c; cat /proc/sys/kernel/core_pattern
Side effects of the fix: No core file is written unless a user raises the limit for a run to debug.
Sources: https://man7.org/linux/man-pages/man5/core.5.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import GPU_ON_PCI, AtMost, Check, Fact, FactAbsentError, FactsView, limit
from nodetune.checks.shared.limit_sides import PASSED_ON, cause, limits_for
from nodetune.checks.shared.slurm_settings import comes_from_submitter


def observe(facts: FactsView) -> Fact | dict[str, Any]:
    if str(facts["sysctl.kernel.core_pattern"]).startswith("|"):
        raise FactAbsentError("kernel.core_pattern pipes core dumps to a program, which limits them itself")
    config = facts.readable("slurm.config", {"settings": {}})
    without = "slurmd" if comes_from_submitter(config["settings"], "CORE") else ""
    return limits_for(facts, "core", "soft", tuple(name for name in PASSED_ON if name != without))


CHECK = Check(
    needs=("limits.core", "slurm.config", "sysctl.kernel.core_pattern"),
    observe=observe,
    cause=cause("core"),
    accept=AtMost(16 << 30),
    set=0,
    applies=(GPU_ON_PCI,),
    unit="bytes",
    remedy=limit("core"),
    severity="low",
    name="core dumps",
)
