"""ConstrainDevices is off, so jobs can use every GPU.

Why it matters: Only CUDA_VISIBLE_DEVICES keeps a job on its GPUs, and a program, a container or a user can ignore or
overwrite it. Two jobs then share a GPU and fail for lack of memory. ConstrainDevices is off by default.
Confirm manually: grep -i ConstrainDevices /etc/slurm/cgroup.conf
Side effects of the fix: Jobs that used GPUs without requesting them fail. Inside a job, GPU numbers start at 0.
Sources: https://slurm.schedmd.com/cgroup.conf.html
"""

from nodetune.api import GPU_ON_PCI, SLURM, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> str:
    """Return the setting; "no", Slurm's documented default, where cgroup.conf or the line is missing."""
    return "ConstrainDevices=" + str(facts.get("slurm.cgroup", {}).get("constraindevices", "no")).lower()


CHECK = Check(
    needs=("slurm.cgroup",),
    observe=observe,
    accept=Equals("ConstrainDevices=yes"),
    applies=(SLURM, GPU_ON_PCI),
    remedy=manual(
        "Write ConstrainDevices=yes into cgroup.conf (with TaskPlugin=task/affinity,task/cgroup in slurm.conf, and "
        "every GPU in gres.conf), then restart slurmd on all nodes"
    ),
    severity="medium",
    name="cgroup.conf",
)
