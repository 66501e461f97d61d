"""Slurm's default of CPUs per GPU exceeds the node.

Why it matters: A job that asks for all GPUs, and does not say how many CPUs it needs, asks for DefCpuPerGPU times their
number. If the node has fewer, Slurm rejects the job, or leaves GPUs without work next to jobs that took the CPUs.
Confirm manually: scontrol show config | grep DefCpuPerGPU; scontrol show node $(hostname -s) | grep -E 'CPUTot|Gres'
Side effects of the fix: Jobs without a number of their own get fewer CPUs.
Sources: https://slurm.schedmd.com/slurm.conf.html#OPT_DefCpuPerGPU ; https://slurm.schedmd.com/gres.html
"""

from __future__ import annotations

from nodetune.api import GPU, SLURM, Absent, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> str | Absent:
    told = facts["slurm.cluster"].get("defcpupergpu", "")
    gpus, cpus = facts["slurm.node"]["gpus"], facts["cpu.count"]
    if not told.isdecimal() or not gpus:
        return Absent("slurm.conf has no DefCpuPerGPU for the whole cluster, or this node no GPU")
    return f"{told} CPUs for each of {gpus} GPUs, of {cpus}" if int(told) * gpus > cpus else ""


CHECK = Check(
    needs=("slurm.cluster", "slurm.node", "cpu.count"),
    observe=observe,
    accept=Empty("CPUs for all GPUs"),
    applies=(SLURM, GPU),
    remedy=manual(
        "Set DefCpuPerGPU in slurm.conf to the CPUs of the node, less reserved ones, divided by its GPUs. Where nodes differ, set it "
        "for each partition. Then: scontrol reconfigure"
    ),
    severity="low",
)
