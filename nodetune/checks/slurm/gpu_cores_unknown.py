"""gres.conf does not assign CPU cores to GPUs.

Why it matters: gres.conf neither detects the cores nor lists them, so a job that requests one GPU may get cores of the
other socket. Every copy between host and GPU then crosses the link between the sockets. Slurm does not find NVLink
neighbours either.
Confirm manually: slurmd -G
Side effects of the fix: slurmd restarts (jobs survive). Detected devices that differ from
listed ones drain the node.
Sources: https://slurm.schedmd.com/gres.conf.html
"""

from nodetune.api import GPU, SEVERAL_NUMA_NODES, SLURM, Check, FactsView, OneOf, manual
from nodetune.checks.shared.slurm_settings import cannot_detect


def observe(facts: FactsView) -> str:
    """Return the value of AutoDetect, or that cores are listed. No gres.conf means no detection."""
    gres = facts.get("slurm.gres", {"autodetect": None, "cores": False})
    if gres["cores"]:
        return "cores listed"
    word = cannot_detect(facts)
    if word:
        return f"AutoDetect={word}, for which this slurmd has no gpu_{word}.so"
    return "neither listed nor detected" if gres["autodetect"] in (None, "off") else str(gres["autodetect"])


CHECK = Check(
    needs=("slurm.gres", "slurm.detects"),
    observe=observe,
    accept=OneOf(["nvml", "nvidia", "full", "nrt", "cores listed"]),
    applies=(SLURM, GPU, SEVERAL_NUMA_NODES),
    remedy=manual(
        "nodetune plan --scheduler-diff FILE writes the lines for gres.conf, with File= and Cores=, which every slurmd takes. "
        "Restart slurmctld and slurmd. AutoDetect=nvml (from Slurm 24.11 on also nvidia) instead of them works only where "
        "slurmd -G then lists the GPUs; elsewhere Slurm drains the node."
    ),
    severity="medium",
    name="cores in gres.conf",
)
