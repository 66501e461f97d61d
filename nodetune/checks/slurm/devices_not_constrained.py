"""Jobs see all GPUs, whatever they asked for.

Why it matters: CUDA_VISIBLE_DEVICES is all that keeps a job on its GPUs, and a program, a container or a user can
ignore or overwrite it: two jobs then share a GPU and fail for lack of its memory. ConstrainDevices is off by default.
Confirm by hand: grep -i ConstrainDevices /etc/slurm/cgroup.conf
Side effects of the fix: Jobs that used GPUs without asking fail. Inside a job GPU numbers start at 0.
Sources: https://slurm.schedmd.com/cgroup.conf.html
"""

from nodetune.conditions import GPU_ON_PCI, SLURM
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    """The setting; "no" where cgroup.conf or the line is missing, which is Slurm's documented default."""
    return "ConstrainDevices=" + str(facts.get("slurm.cgroup", {}).get("constraindevices", "no")).lower()


CHECK = Check(
    needs=("slurm.cgroup",),
    observe=observe,
    accept=Equals("ConstrainDevices=yes"),
    applies=(SLURM, GPU_ON_PCI),
    remedy=manual(
        "Write ConstrainDevices=yes into cgroup.conf (with TaskPlugin=task/affinity,task/cgroup in slurm.conf, and every GPU in "
        "gres.conf), then restart slurmd on all nodes"
    ),
    severity="medium",
)
