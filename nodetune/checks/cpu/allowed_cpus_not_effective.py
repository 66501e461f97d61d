"""AllowedCPUs= is set in a unit file but is not in effect.

Why it matters: A site that confines system tasks expects jobs to have their cores to themselves. AllowedCPUs= needs
control groups v2 and has no effect on v1. A change to the file also has no effect until systemd reloads it.
Confirm manually: systemctl show -p AllowedCPUs -p EffectiveCPUs init.scope system.slice user.slice
Side effects of the fix: The tasks of the group move to its allowed CPUs.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual


def observe(facts: FactsView) -> Any:
    """Return the problem of each group that has AllowedCPUs=."""
    running = facts.get("cpu.cpusets", {})
    return {unit: _problem(wanted, running.get(unit)) for unit, wanted in facts["cpu.allowed_cpus"].items()} or []


def _problem(wanted: Any, running: Any) -> Any:
    source = f"{wanted['file']} line {wanted['line']}"
    if running is None:
        return f"no cpuset, but {source} sets {wanted['cpus']}"
    return [] if running["cpus"] == wanted["cpus"] else f"{running['cpus']}, but {source} sets {wanted['cpus']}"


CHECK = Check(
    observe=observe,
    needs=("cpu.cpusets", "cpu.allowed_cpus"),
    accept=Empty("the CPUs that the unit file sets"),
    remedy=manual(
        "Run systemctl set-property --runtime UNIT AllowedCPUs=LIST to apply it now, or reboot. If stat -fc %T "
        "/sys/fs/cgroup does not print cgroup2fs, boot with systemd.unified_cgroup_hierarchy=1 first."
    ),
    severity="low",
)
