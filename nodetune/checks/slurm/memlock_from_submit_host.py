"""Jobs inherit the locked-memory limit of the submit host.

Why it matters: By default, Slurm copies all soft limits of the submitting shell. A login node with the usual 8 MiB
passes them to every job, although slurmd on this node allows all memory. RDMA then fails in jobs but works in an
interactive test.
Confirm manually: scontrol show config | grep PropagateResourceLimits; srun bash -c 'ulimit -l'
Side effects of the fix: Jobs get slurmd's limit instead: it must be unlimited itself (LimitMEMLOCK=infinity).
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/faq.html
"""

from nodetune.api import RDMA, SLURM, Check, Equals, FactsView, manual
from nodetune.checks.shared.slurm_settings import comes_from_submitter


def observe(facts: FactsView) -> str:
    return "the submitter's" if comes_from_submitter(facts["slurm.config"]["settings"], "MEMLOCK") else "slurmd's"


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Equals("slurmd's"),
    applies=(SLURM, RDMA),
    remedy=manual(
        "Write PropagateResourceLimitsExcept=MEMLOCK into slurm.conf, LimitMEMLOCK=infinity for slurmd (systemctl "
        "edit slurmd), then restart slurmctld and slurmd"
    ),
    severity="medium",
    name="memlock of jobs",
)
