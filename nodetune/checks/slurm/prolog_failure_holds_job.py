"""A failed prolog holds the job instead of requeueing it.

Why it matters: When the prolog fails on a node, Slurm drains the node and by default requeues the job as held. The job
waits until its owner or an administrator releases it, although it did nothing wrong.
Confirm manually: scontrol show config | grep SchedulerParameters
Side effects of the fix: A job whose own settings make the prolog fail drains one node after another: let the prolog
fail only for faults of the node.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/prolog_epilog.html
"""

from nodetune.api import SLURM, Check, Equals, FactsView, manual
from nodetune.checks.shared.slurm_settings import require_prolog, words


def observe(facts: FactsView) -> str:
    return "requeued" if "nohold_on_prolog_fail" in words(require_prolog(facts), "schedulerparameters") else "held"


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Equals("requeued"),
    applies=(SLURM,),
    remedy=manual("Add nohold_on_prolog_fail to SchedulerParameters in slurm.conf, then: scontrol reconfigure"),
    severity="low",
    name="job of failed prolog",
)
