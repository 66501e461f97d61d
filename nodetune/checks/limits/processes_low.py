"""A user may start too few processes.

Why it matters: Threads count too. Eight ranks with their data loaders, OpenMP teams and NCCL helpers are thousands on a
machine with hundreds of cores; beyond the limit fork fails with "Resource temporarily unavailable".
Confirm by hand: ulimit -u; grep processes /proc/$(pidof slurmd)/limits
Side effects of the fix: A runaway program is stopped later.
Sources: https://man7.org/linux/man-pages/man2/getrlimit.2.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html
"""

from typing import Any

from nodetune.checks.limits._sides import seen
from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import AtLeast
from nodetune.model import Check, Fact, Value
from nodetune.remedies import limit
from nodetune.view import View


def observe(facts: View) -> Fact | dict[str, Any]:
    """No limit is as many as the kernel runs at all."""
    found = seen(facts, "nproc")
    if not isinstance(found, dict):
        return found
    all_of_them = facts["sysctl.kernel.threads-max"]
    return {name: Value(all_of_them) if one == Value("unlimited") else one for name, one in found.items()}


CHECK = Check(
    needs=("limits.nproc", "sysctl.kernel.threads-max"),
    observe=observe,
    accept=AtLeast(65536),
    set="unlimited",
    applies=(GPU_ON_PCI,),
    remedy=limit("nproc"),
    severity="low",
)
