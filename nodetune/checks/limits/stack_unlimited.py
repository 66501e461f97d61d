"""The stack size is unlimited.

Why it matters: glibc uses the soft limit as the stack size of each new thread. Without a limit it uses 2 MiB instead of
the usual 8. NCCL's topology search recurses deeply in such a thread and could crash (NCCL works around it since 2.28;
other libraries do not).
Confirm manually: ulimit -s; grep stack /proc/$(pidof containerd)/limits
Side effects of the fix: Old Fortran programs with large arrays on the stack may need an unlimited stack: set it for
those only.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://man7.org/linux/man-pages/man3/pthread_create.3.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Check, Equals, Fact, FactsView, Not, limit
from nodetune.checks.shared.limit_sides import PASSED_ON, cause, limits_for
from nodetune.checks.shared.slurm_settings import comes_from_submitter


def observe(facts: FactsView) -> Fact | dict[str, Any]:
    """Return the soft limits. slurmd's own (unlimited, in its unit file) counts only if jobs get it."""
    config = facts.readable("slurm.config", {"settings": {}})
    without = "slurmd" if comes_from_submitter(config["settings"], "STACK") else ""
    return limits_for(facts, "stack", "soft", tuple(name for name in PASSED_ON if name != without))


CHECK = Check(
    needs=("limits.stack", "slurm.config"),
    observe=observe,
    cause=cause("stack"),
    accept=Not(Equals("unlimited")),
    set=8388608,
    unit="bytes",
    remedy=limit("stack"),
    severity="low",
)
