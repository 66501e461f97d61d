"""Prolog or Epilog has no time limit.

Why it matters: By default, Slurm waits for them without limit. A health check that is stuck in a driver call then
blocks the job, and the node, for good. The job shows as running, its time passes, and no log names the cause.
Confirm manually: scontrol show config | grep -E 'PrologEpilogTimeout|PrologTimeout|EpilogTimeout'
Side effects of the fix: A prolog that needs longer is killed and drains the node: set the limit well above its usual
run time.
Sources: https://slurm.schedmd.com/slurm.conf.html ; https://slurm.schedmd.com/prolog_epilog.html
"""

from nodetune.api import SLURM, Check, Empty, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> list[str]:
    """Find which of the two has no time limit. Newer releases have one limit for each."""
    settings = facts["slurm.config"]["settings"]
    used = [name for name in ("Prolog", "Epilog") if settings.get(name.lower())]
    if not used:
        raise FactAbsentError("neither Prolog nor Epilog is set in slurm.conf")
    if settings.get("prologepilogtimeout", "65534") != "65534":
        return []
    return [name for name in used if settings.get(f"{name.lower()}timeout", "65534") == "65534"]


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Empty("a time limit for each"),
    applies=(SLURM,),
    remedy=manual(
        "Write PrologEpilogTimeout=300 (or a generous limit for your prolog) into slurm.conf, then: scontrol "
        "reconfigure"
    ),
    severity="medium",
    name="without time limit",
)
