"""Slurm may lose track of a job's processes.

Why it matters: proctrack/linuxproc and proctrack/pgid follow parents or process groups, which a daemonized or
re-parented process leaves. It outlives its job and keeps memory of a GPU that the next job counts on.
Confirm by hand: scontrol show config | grep ProctrackType
Side effects of the fix: slurmctld and slurmd have to be restarted with no jobs running.
Sources: https://slurm.schedmd.com/slurm.conf.html
"""

from nodetune.conditions import SLURM
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> str:
    kind = facts["slurm.config"]["settings"].get("proctracktype")
    if not kind:
        raise Missing("ProctrackType is not set: Slurm uses cgroups where it has them")
    return str(kind).lower().removeprefix("proctrack/")


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Equals("cgroup"),
    applies=(SLURM,),
    remedy=manual(
        "Write ProctrackType=proctrack/cgroup into slurm.conf; with no jobs running restart slurmctld and all slurmd"
    ),
    severity="medium",
)
