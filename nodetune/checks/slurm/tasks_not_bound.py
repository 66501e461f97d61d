"""Slurm does not bind the tasks of a job to its cores.

Why it matters: task/affinity places each task on cores near each other, task/cgroup keeps all of a job within its own.
Without them ranks wander over both sockets and over their neighbours' cores; --cpu-bind does nothing or only half.
Confirm by hand: scontrol show config | grep TaskPlugin
Side effects of the fix: slurmd restarts everywhere. With ConstrainCores=yes jobs that asked for too few cores get slower.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/cgroups.html
"""

from nodetune.checks.slurm._settings import words
from nodetune.conditions import SLURM
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> list[str]:
    """Which of the two are missing. No release has both by default."""
    plugins = {word.removeprefix("task/") for word in words(facts["slurm.config"]["settings"], "taskplugin")}
    return [f"no task/{name}" for name in ("affinity", "cgroup") if name not in plugins]


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Empty("task/affinity and task/cgroup"),
    applies=(SLURM,),
    remedy=manual(
        "Write TaskPlugin=task/affinity,task/cgroup into slurm.conf and ConstrainCores=yes into cgroup.conf, then restart "
        "slurmctld and slurmd everywhere"
    ),
    severity="medium",
)
