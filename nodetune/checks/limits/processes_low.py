"""The process limit (nproc) is too low.

Why it matters: Threads count too. Eight ranks with their data loaders, OpenMP teams and NCCL helpers start thousands of
threads on a machine with hundreds of cores. Beyond the limit, fork fails with "Resource temporarily unavailable".
Confirm manually: ulimit -u; grep processes /proc/$(pidof slurmd)/limits
Side effects of the fix: A runaway program is stopped later.
Sources: https://man7.org/linux/man-pages/man2/getrlimit.2.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import GPU_ON_PCI, AtLeast, Check, Fact, FactsView, Value, limit
from nodetune.checks.shared import limit_sides
from nodetune.checks.shared.limit_sides import limits_for


def observe(facts: FactsView) -> Fact | dict[str, Any]:
    """Return the limit of each subject. Unlimited means as many as the kernel can run."""
    found = limits_for(facts, "nproc")
    if not isinstance(found, dict):
        return found
    kernel_limit = facts["sysctl.kernel.threads-max"]
    return {name: Value(kernel_limit) if one == Value("unlimited") else one for name, one in found.items()}


def cause(facts: FactsView, subjects: tuple[str, ...]) -> str:
    """Name what set the limits that are numbers. An unlimited one is as low as the kernel's own: see `ceiling`."""
    given = limits_for(facts, "nproc")
    numbers = tuple(name for name in subjects if isinstance(given, dict) and given[name] != Value("unlimited"))
    return limit_sides.cause("nproc")(facts, numbers)


CHECK = Check(
    needs=("limits.nproc", "sysctl.kernel.threads-max"),
    observe=observe,
    cause=cause,
    ceiling="sysctl.kernel.threads-max",
    accept=AtLeast(65536),
    set="unlimited",
    applies=(GPU_ON_PCI,),
    remedy=limit("nproc"),
    severity="low",
)
