"""AllowedCPUs= stands in a unit file but the kernel does not follow it.

Why it matters: A site that confines system tasks believes that jobs have their cores to themselves. AllowedCPUs= needs
control groups v2 and does nothing on v1; a change of the file without a reload does nothing either.
Confirm by hand: systemctl show -p AllowedCPUs -p EffectiveCPUs init.scope system.slice user.slice
Side effects of the fix: The tasks of the group move to the CPUs that it is given.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> Any:
    """What is wrong with each group that has AllowedCPUs=."""
    running = facts.get("cpu.cpusets", {})
    return {unit: _problem(wanted, running.get(unit)) for unit, wanted in facts["cpu.allowed_cpus"].items()} or []


def _problem(wanted: Any, running: Any) -> Any:
    place = f"{wanted['file']} line {wanted['line']}"
    if running is None:
        return f"no cpuset, though {place} says {wanted['cpus']}"
    return [] if running["cpus"] == wanted["cpus"] else f"{running['cpus']}, though {place} says {wanted['cpus']}"


CHECK = Check(
    observe=observe,
    needs=("cpu.cpusets", "cpu.allowed_cpus"),
    accept=Empty("the CPUs that the unit file says"),
    remedy=manual(
        "systemctl set-property --runtime UNIT AllowedCPUs=LIST applies it at once (a reboot does too). If stat -fc %T "
        "/sys/fs/cgroup does not say cgroup2fs, boot with systemd.unified_cgroup_hierarchy=1 first."
    ),
    severity="low",
)
