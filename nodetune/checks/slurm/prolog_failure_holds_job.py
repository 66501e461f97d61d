"""A job that meets a bad node is held instead of started elsewhere.

Why it matters: When the prolog refuses a node, Slurm drains the node and puts the job back in the queue, held, by
default: it waits until its owner or an administrator releases it. The job did nothing wrong.
Confirm by hand: scontrol show config | grep SchedulerParameters
Side effects of the fix: A job whose own settings make the prolog fail drains one node after another: let the prolog
refuse for faults of the node only.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/prolog_epilog.html
"""

from nodetune.checks.slurm._settings import require_prolog, words
from nodetune.conditions import SLURM
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    return "requeued" if "nohold_on_prolog_fail" in words(require_prolog(facts), "schedulerparameters") else "held"


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Equals("requeued"),
    applies=(SLURM,),
    remedy=manual("Add nohold_on_prolog_fail to SchedulerParameters in slurm.conf, then: scontrol reconfigure"),
    severity="low",
)
