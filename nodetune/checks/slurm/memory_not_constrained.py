"""ConstrainRAMSpace is off, so a job can take the memory of others.

Why it matters: Without it, Slurm does not enforce the memory that a job asked for. One job that takes too much leads the
kernel to end processes, often those of another job, or slurmd. ConstrainRAMSpace is off by default. The check judges
only a cgroup.conf that constrains something else. Where a job always gets the whole node, only the system's own services
are at risk: waive this finding there.
Confirm manually: grep -i ConstrainRAMSpace /etc/slurm/cgroup.conf
Side effects of the fix: The kernel ends processes of jobs that take more memory than they asked for.
Sources: https://slurm.schedmd.com/cgroup.conf.html
"""

from nodetune.api import SLURM, Check, Equals, FactAbsentError, FactsView, manual

OTHERS = ("constraincores", "constraindevices", "constrainramspace")


def observe(facts: FactsView) -> str:
    """Return the setting; "no", Slurm's documented default, where the line is missing."""
    settings = facts["slurm.cgroup"]
    if not any(str(settings.get(name)).lower() == "yes" for name in OTHERS):
        raise FactAbsentError("cgroup.conf constrains neither CPUs nor devices")
    return "ConstrainRAMSpace=" + str(settings.get("constrainramspace", "no")).lower()


CHECK = Check(
    needs=("slurm.cgroup",),
    observe=observe,
    accept=Equals("ConstrainRAMSpace=yes"),
    applies=(SLURM,),
    remedy=manual(
        "Write ConstrainRAMSpace=yes into cgroup.conf (with task/cgroup in TaskPlugin of slurm.conf), then restart "
        "slurmd on all nodes"
    ),
    severity="low",
    name="cgroup.conf",
)
