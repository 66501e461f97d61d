"""The prolog runs only when the first task of a job starts on the node.

Why it matters: Without PrologFlags=Alloc a batch job runs it on its first node only, until a step uses the others: a
bad node is found minutes into the job. And a slow prolog then breaks the launch itself (socket timed out).
Confirm by hand: scontrol show config | grep PrologFlags
Side effects of the fix: Allocations wait until the prolog has ended on all their nodes.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/prolog_epilog.html
"""

from nodetune.checks.slurm._settings import require_prolog, words
from nodetune.conditions import SLURM
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

MEAN_ALLOC = {"alloc", "contain", "x11", "runinjob"}
"""The other three set Alloc by themselves."""


def observe(facts: View) -> str:
    return "at allocation" if words(require_prolog(facts), "prologflags") & MEAN_ALLOC else "at the first task"


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Equals("at allocation"),
    applies=(SLURM,),
    remedy=manual(
        "Write PrologFlags=Alloc (or Contain, for pam_slurm_adopt) into slurm.conf, then: scontrol reconfigure"
    ),
    severity="medium",
)
