"""ProctrackType is not proctrack/cgroup.

Why it matters: proctrack/linuxproc and proctrack/pgid follow parents or process groups, which a daemonized or
re-parented process leaves. Such a process outlives its job and keeps GPU memory that the next job needs.
Confirm manually: scontrol show config | grep ProctrackType
Side effects of the fix: slurmctld and slurmd must be restarted with no jobs running.
Sources: https://slurm.schedmd.com/slurm.conf.html
"""

from nodetune.api import SLURM, Check, Equals, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    kind = facts["slurm.config"]["settings"].get("proctracktype")
    if not kind:
        raise FactAbsentError("ProctrackType is not set: Slurm uses cgroups where it has them")
    return str(kind).lower().removeprefix("proctrack/")


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Equals("cgroup"),
    applies=(SLURM,),
    remedy=manual(
        "Write ProctrackType=proctrack/cgroup into slurm.conf. With no jobs running, restart slurmctld and all slurmd."
    ),
    severity="medium",
    name="ProctrackType",
)
