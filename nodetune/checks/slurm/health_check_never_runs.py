"""Slurm runs no health check on the node.

Why it matters: Neither a prolog nor a periodic health check runs, or HealthCheckInterval is the default 0, which means
never. A node with a failed GPU or link then takes job after job and fails each of them.
Confirm manually: scontrol show config | grep -E 'HealthCheck|^Prolog '
Side effects of the fix: The program runs as root, on busy nodes too: keep it light and read-only. Slurm ignores its
exit code: the program must drain the node itself.
Sources: https://slurm.schedmd.com/slurm.conf.html
"""

from nodetune.api import SLURM, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> str:
    settings = facts["slurm.config"]["settings"]
    if settings.get("healthcheckprogram"):
        return "HealthCheckInterval is 0" if settings.get("healthcheckinterval", "0") == "0" else ""
    return "" if settings.get("prolog") else "neither HealthCheckProgram nor Prolog is set"


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
