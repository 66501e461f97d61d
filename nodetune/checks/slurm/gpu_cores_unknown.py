"""gres.conf does not assign CPU cores to GPUs.

Why it matters: gres.conf neither detects the cores nor lists them, so a job that requests one GPU may get cores of the
other socket. Every copy between host and GPU then crosses the link between the sockets. Slurm does not find NVLink
neighbours either.
Confirm manually: slurmd -G
Side effects of the fix: slurmd restarts (jobs survive). slurmd must be built with NVML for nvml; detected devices that
differ from listed ones drain the node.
Sources: https://slurm.schedmd.com/gres.conf.html
"""

from nodetune.api import GPU, SEVERAL_NUMA_NODES, SLURM, Check, FactsView, OneOf, manual


def observe(facts: FactsView) -> str:
    """Return the value of AutoDetect, or that cores are listed. No gres.conf means no detection."""
    gres = facts.get("slurm.gres", {"autodetect": None, "cores": False})
    return "cores listed" if gres["cores"] else gres["autodetect"] or "off"


CHECK = Check(
    needs=("slurm.gres",),
    observe=observe,
    accept=OneOf(["nvml", "nvidia", "full", "nrt", "cores listed"]),
    applies=(SLURM, GPU, SEVERAL_NUMA_NODES),
    remedy=manual(
        "Write AutoDetect=nvml into gres.conf (nvidia from Slurm 24.11 on, if slurmd lacks NVML), then restart slurmd"
    ),
    severity="medium",
)
