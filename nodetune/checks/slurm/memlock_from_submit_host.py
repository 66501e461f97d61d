"""Jobs get the locked-memory limit of the shell that submitted them.

Why it matters: Slurm copies all soft limits of the submitting shell by default. A login node with the usual 8 MiB gives
them to every job, though slurmd on this node allows all: RDMA then fails in jobs and works when tried by hand.
Confirm by hand: scontrol show config | grep PropagateResourceLimits; srun bash -c 'ulimit -l'
Side effects of the fix: Jobs get slurmd's limit instead: it must be unlimited itself (LimitMEMLOCK=infinity).
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/faq.html
"""

from nodetune.checks.slurm._settings import comes_from_submitter
from nodetune.conditions import RDMA, SLURM
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    return "the submitter's" if comes_from_submitter(facts["slurm.config"]["settings"], "MEMLOCK") else "slurmd's"


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Equals("slurmd's"),
    applies=(SLURM, RDMA),
    remedy=manual(
        "Write PropagateResourceLimitsExcept=MEMLOCK into slurm.conf, LimitMEMLOCK=infinity for slurmd (systemctl edit slurmd), "
        "then restart slurmctld and slurmd"
    ),
    severity="medium",
)
