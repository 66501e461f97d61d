"""Slurm does not know which cores belong to which GPU.

Why it matters: gres.conf neither detects them nor lists them, so a job that asks for one GPU may get cores of the other
socket: every copy between host and GPU then crosses the link between the sockets. NVLink neighbours are unknown too.
Confirm by hand: slurmd -G
Side effects of the fix: slurmd restarts (jobs survive). slurmd must be built with NVML for nvml; detected devices that
differ from listed ones drain the node.
Sources: https://slurm.schedmd.com/gres.conf.html
"""

from nodetune.conditions import GPU, SEVERAL_NUMA_NODES, SLURM
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    """AutoDetect's value, or that cores are listed by hand. No gres.conf means no detection."""
    gres = facts.get("slurm.gres", {"autodetect": None, "cores": False})
    return "cores listed" if gres["cores"] else gres["autodetect"] or "off"


CHECK = Check(
    needs=("slurm.gres",),
    observe=observe,
    accept=OneOf(["nvml", "nvidia", "full", "nrt", "cores listed"]),
    applies=(SLURM, GPU, SEVERAL_NUMA_NODES),
    remedy=manual(
        "Write AutoDetect=nvml into gres.conf (nvidia from Slurm 24.11 on, where slurmd lacks NVML), then restart slurmd"
    ),
    severity="medium",
)
