"""Slurm reserves no cores of this node for the system.

Why it matters: Daemons, interrupts and file system clients then run on the cores of jobs, and a collective waits for the rank
that they delay. CoreSpecCount or CpuSpecList keeps some cores free of jobs, and slurmd on them. A node where every
core computes loses that share of its cores: measure first (jitter).
Confirm manually: scontrol show node $(hostname -s) | grep -E 'CoreSpec|CPUSpecList'
Side effects of the fix: Jobs get fewer cores: those that ask for all of them stay pending.
Sources: https://slurm.schedmd.com/core_spec.html ; https://slurm.schedmd.com/slurm.conf.html#OPT_CpuSpecList
"""

from nodetune.api import GPU, SLURM, Check, Equals, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    """Return whether the node's line reserves some. It has no effect unless Slurm confines jobs to their cores."""
    if str(facts["slurm.cgroup"].get("constraincores", "no")).lower() != "yes":
        raise FactAbsentError("cgroup.conf does not confine jobs to their cores")
    return "reserved" if facts["slurm.reserved"] else "none"


CHECK = Check(
    needs=("slurm.reserved", "slurm.cgroup"),
    observe=observe,
    accept=Equals("reserved"),
    applies=(SLURM, GPU),
    remedy=manual(
        "Write CoreSpecCount=2 (or CpuSpecList= with the IDs of one core of each socket) on the node's line in slurm.conf, "
        "restart slurmctld and the slurmd, and compare the measurement jitter before and after."
    ),
    severity="info",
)
