"""ConstrainCores is off, so a job can use the cores of others.

Why it matters: task/cgroup keeps a job within its own cores only with ConstrainCores=yes in cgroup.conf, which is off by
default. A job that starts more threads than it asked for cores then slows the ranks of others. The check judges only a
cgroup.conf that constrains something else. Where a job always gets the whole node, waive this finding.
Confirm manually: grep -i ConstrainCores /etc/slurm/cgroup.conf
Side effects of the fix: Jobs that requested too few cores get slower.
Sources: https://slurm.schedmd.com/cgroup.conf.html ; https://slurm.schedmd.com/cgroups.html
"""

from nodetune.api import SLURM, Check, Equals, FactAbsentError, FactsView, manual

OTHERS = ("constraindevices", "constrainramspace")


def observe(facts: FactsView) -> str:
    """Return the setting; "no", Slurm's documented default, where the line is missing."""
    settings = facts["slurm.cgroup"]
    cores = str(settings.get("constraincores", "no")).lower()
    if cores != "yes" and not any(str(settings.get(name)).lower() == "yes" for name in OTHERS):
        raise FactAbsentError("cgroup.conf constrains neither devices nor memory")
    return f"ConstrainCores={cores}"


CHECK = Check(
    needs=("slurm.cgroup",),
    observe=observe,
    accept=Equals("ConstrainCores=yes"),
    applies=(SLURM,),
    remedy=manual(
        "Write ConstrainCores=yes into cgroup.conf (with TaskPlugin=task/affinity,task/cgroup in slurm.conf), then restart "
        "slurmd on all nodes. nodetune plan --scheduler-diff FILE writes all such changes as a diff."
    ),
    severity="low",
    name="cgroup.conf",
)
