"""PrologFlags lacks Alloc, so the prolog runs late.

Why it matters: Without PrologFlags=Alloc, a batch job runs the prolog only on its first node, until a step uses the
others. A bad node is found minutes into the job. A slow prolog then breaks the launch itself (socket timed out).
Confirm manually: scontrol show config | grep PrologFlags
Side effects of the fix: Allocations wait until the prolog has ended on all their nodes.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/prolog_epilog.html
"""

from nodetune.api import SLURM, Check, Equals, FactsView, manual
from nodetune.checks.shared.slurm_settings import require_prolog, words

MEAN_ALLOC = {"alloc", "contain", "x11", "runinjob"}
"""The other three imply Alloc."""


def observe(facts: FactsView) -> str:
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
    name="prolog",
)
