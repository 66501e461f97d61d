"""Some system tasks are confined to a few CPUs while others roam over all of them.

Why it matters: Confining only one of system.slice and init.scope keeps most daemons off the cores of jobs and lets the
rest interrupt them: the noise gets rarer and harder to find. Confine both, to the same CPUs, or neither.
Confirm by hand: cat /sys/fs/cgroup/{init.scope,system.slice}/cpuset.cpus.effective
Side effects of the fix: systemd itself, or the daemons, move to the given CPUs.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html
"""

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

GROUPS = ("init.scope", "system.slice")


def observe(facts: View) -> dict[str, object]:
    """The groups that roam although the other one is confined."""
    cpusets, total = facts["cpu.cpusets"], facts["cpu.count"]
    confined = [name for name in GROUPS if name in cpusets and cpusets[name]["count"] < total]
    if len(confined) != 1:
        return {name: [] for name in GROUPS}
    (other,) = confined
    told = f"may use every CPU, while {other} keeps to {cpusets[other]['cpus']}"
    return {name: [] if name == other else told for name in GROUPS}


CHECK = Check(
    observe=observe,
    needs=("cpu.cpusets", "cpu.count"),
    accept=Empty("both confined, or neither"),
    remedy=manual(
        "systemctl set-property init.scope AllowedCPUs=LIST, with the list of the other group; or systemctl set-property "
        "UNIT AllowedCPUs= to lift it. Where Slurm or Docker run jobs under system.slice, lift it."
    ),
    severity="info",
)
