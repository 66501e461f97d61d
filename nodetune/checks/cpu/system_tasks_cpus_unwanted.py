"""System tasks may use other CPUs than the site declares.

Why it matters: Daemons, sessions and systemd itself take turns with jobs on every CPU. A site that reserves CPUs for them
keeps the others free, which evens out the steps of a job. The site file declares the CPUs, which should be near no GPU:
accept: 0-3, set: 0-3. nodetune then confines init.scope, system.slice and user.slice to them. Without such a line the check
does not apply. It is for Kubernetes nodes: Slurm and Docker run jobs in system.slice (job-cpus-confined), so nodetune refuses it
there, with the line of slurm.conf or daemon.json that helps.
Confirm manually: systemctl show -p AllowedCPUs -p EffectiveCPUs init.scope system.slice user.slice
Side effects of the fix: systemd reloads, which can take GPUs away from running containers. Everything in the three groups, also
the kubelet and the container engine, shares those CPUs; pods do not.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html ;
https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/
"""

from typing import Any

from nodetune.api import Check, FactsView, system_cpus

GROUPS = ("init.scope", "system.slice", "user.slice")


def observe(facts: FactsView) -> dict[str, str]:
    """Return the CPUs of each group, now and after the next boot. One without a cpuset may use all that are online."""
    every = facts["cpu.online"]
    return {
        unit: _seen(*(facts[name].get(unit, {}).get("cpus", every) for name in ("cpu.cpusets", "cpu.allowed_cpus")))
        for unit in GROUPS
    }


def _seen(now: Any, later: Any) -> str:
    return str(now) if now == later else f"{now} now, {later} after the next boot"


CHECK = Check(
    needs=("cpu.cpusets", "cpu.allowed_cpus", "cpu.online"),
    observe=observe,
    accept=None,
    remedy=system_cpus(),
    severity="low",
)
