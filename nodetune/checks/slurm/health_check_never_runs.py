"""Slurm runs no health check on the node.

Why it matters: Neither a prolog nor a periodic health check runs, or HealthCheckInterval is the default 0, which means
never, or HealthCheckNodeState lets it run only once, as slurmd starts or the node boots. A node with a failed GPU or link then takes job after job and fails each of them.
Confirm manually: scontrol show config | grep -E 'HealthCheck|^Prolog '
Side effects of the fix: The program runs as root, on busy nodes too: keep it light and read-only. Slurm ignores its
exit code: the program must drain the node itself.
Sources: https://slurm.schedmd.com/slurm.conf.html
"""

from nodetune.api import SLURM, Check, Empty, FactsView, manual

ONCE = ("START_ONLY", "REBOOT_ONLY")
"""Values of HealthCheckNodeState (Slurm 25.11, 26.05) with which the program runs without an interval, and only then."""


def observe(facts: FactsView) -> str:
    settings = facts["slurm.config"]["settings"]
    state, prolog = settings.get("healthchecknodestate", "").upper(), settings.get("prolog")
    if not settings.get("healthcheckprogram"):
        return "" if prolog else "neither HealthCheckProgram nor Prolog is set"
    if state in ONCE:
        return "" if prolog else f"HealthCheckNodeState is {state}, and no Prolog is set"
    return "HealthCheckInterval is 0" if settings.get("healthcheckinterval", "0") == "0" else ""


CHECK = Check(
    needs=("slurm.config",),
    observe=observe,
    accept=Empty("a prolog, or a HealthCheckProgram with an interval"),
    applies=(SLURM,),
    remedy=manual(
        "nodetune guard install -i HOSTS -b sets a prolog and a health check. Or, for another program, write into "
        "slurm.conf: HealthCheckProgram=PATH, HealthCheckInterval=300, HealthCheckNodeState=ANY,CYCLE (the program drains: "
        "scontrol update nodename=$SLURMD_NODENAME state=drain reason=...), then: scontrol reconfigure"
    ),
    severity="medium",
    name="Slurm health check",
)
