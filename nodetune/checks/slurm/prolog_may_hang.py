"""Nothing ends a prolog or epilog that hangs.

Why it matters: Slurm waits for them without limit by default. A health check that is stuck in a driver call then holds
the job, and the node, for good: the job shows as running, its time passes, and no log says why.
Confirm by hand: scontrol show config | grep -E 'PrologEpilogTimeout|PrologTimeout|EpilogTimeout'
Side effects of the fix: A prolog that needs longer is killed and drains the node: set it well above what yours takes.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/prolog_epilog.html
"""

from nodetune.conditions import SLURM
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> list[str]:
    """Those of the two that are set without a time limit. Newer releases have one for each."""
    settings = facts["slurm.config"]["settings"]
    used = [name for name in ("Prolog", "Epilog") if settings.get(name.lower())]
    if not used:
        raise Missing("neither Prolog nor Epilog is set in slurm.conf")
    if settings.get("prologepilogtimeout", "65534") != "65534":
        return []
    return [name for name in used if settings.get(f"{name.lower()}timeout", "65534") == "65534"]


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Empty("a time limit for each"),
    applies=(SLURM,),
    remedy=manual(
        "Write PrologEpilogTimeout=300 (or what yours needs, generously) into slurm.conf, then: scontrol reconfigure"
    ),
    severity="medium",
)
