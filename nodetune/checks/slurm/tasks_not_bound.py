"""TaskPlugin lacks task/affinity or task/cgroup.

Why it matters: task/affinity places each task on cores near each other; task/cgroup keeps a job within its own cores.
Without them, ranks move across both sockets and onto the cores of other jobs, and --cpu-bind has no effect or only
half of it.
Confirm manually: scontrol show config | grep TaskPlugin
Side effects of the fix: slurmd restarts everywhere. With ConstrainCores=yes, jobs that requested too few cores get
slower.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/cgroups.html
"""

from nodetune.api import SLURM, Check, Empty, FactsView, manual
from nodetune.checks.shared.slurm_settings import words


def observe(facts: FactsView) -> list[str]:
    """Find which of the two plugins are missing. No release has both by default."""
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
    name="TaskPlugin",
)
