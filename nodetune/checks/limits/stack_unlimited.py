"""The stack has no limit, which makes the stacks of threads small.

Why it matters: glibc takes the soft limit as the size of each new thread's stack; when there is none it gives 2 MiB
instead of the usual 8. NCCL's search for a topology recurses deeply in such a thread and could crash (NCCL works around
it since 2.28; other libraries do not).
Confirm by hand: ulimit -s; grep stack /proc/$(pidof containerd)/limits
Side effects of the fix: Old Fortran programs with large arrays on the stack may need it unlimited: give it to those.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://man7.org/linux/man-pages/man3/pthread_create.3.html
"""

from typing import Any

from nodetune.checks.limits._sides import PASSED_ON, seen
from nodetune.checks.slurm._settings import comes_from_submitter
from nodetune.expect import Equals, Not
from nodetune.model import Check, Fact
from nodetune.remedies import limit
from nodetune.view import View


def observe(facts: View) -> Fact | dict[str, Any]:
    """What slurmd has itself (unlimited, by its unit file) counts only where jobs get it instead of the submitter's."""
    config = facts.readable("slurm.config", {"settings": {}})
    without = "slurmd" if comes_from_submitter(config["settings"], "STACK") else ""
    return seen(facts, "stack", "soft", tuple(name for name in PASSED_ON if name != without))


CHECK = Check(
    needs=("limits.stack", "slurm.config"),
    observe=observe,
    accept=Not(Equals("unlimited")),
    set=8388608,
    unit="bytes",
    remedy=limit("stack"),
    severity="low",
)
