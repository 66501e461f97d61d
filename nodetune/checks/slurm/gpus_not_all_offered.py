"""Gres in slurm.conf does not match the GPUs of the node.

Why it matters: With fewer GPUs in Gres, GPUs idle while jobs wait. With more, slurmd reports an invalid node, and
Slurm drains it. A GPU that fell off the bus shows here too.
Healthy exception: With MIG, Slurm may offer slices in place of whole GPUs.
Confirm manually: scontrol show node $(hostname -s) | grep Gres; nvidia-smi -L | wc -l
Side effects of the fix: A changed Gres= requires a restart of slurmctld and this slurmd; running jobs stay.
Sources: https://slurm.schedmd.com/gres.html ; https://slurm.schedmd.com/slurm.conf.html
"""

import re

from nodetune.api import GPU, SLURM, Check, Equals, FactAbsentError, FactsView, Ref, manual


def observe(facts: FactsView) -> int:
    node = facts["slurm.node"]
    if re.search(r"\dg\.\d+gb", node["gres"]):
        raise FactAbsentError("the GPUs are offered as MIG slices")
    return int(node["gpus"])


CHECK = Check(
    needs=("slurm.node",),
    observe=observe,
    accept=Equals(Ref("gpu.count")),
    applies=(SLURM, GPU),
    remedy=manual(
        "If nvidia-smi -L shows all GPUs: set Gres=gpu:TYPE:COUNT on this node's line in slurm.conf, restart "
        "slurmctld and slurmd. If it does not, look for the missing GPU first (dmesg, lspci)."
    ),
    severity="high",
    part_of=("gpu-lost", "gpu-missing"),
)
