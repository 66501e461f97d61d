"""Slurm's node line does not offer the GPUs that the node has.

Why it matters: With fewer, GPUs idle while jobs wait; with more, slurmd reports an invalid node and it is drained.
A GPU that fell off the bus shows here too.
Confirm by hand: scontrol show node $(hostname -s) | grep Gres; nvidia-smi -L | wc -l
Side effects of the fix: A changed Gres= needs slurmctld and this slurmd restarted; running jobs stay.
Sources: https://slurm.schedmd.com/gres.html ; https://slurm.schedmd.com/slurm.conf.html
"""

import re

from nodetune.conditions import GPU, SLURM
from nodetune.expect import Equals
from nodetune.model import Check, Ref
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> int:
    node = facts["slurm.node"]
    if re.search(r"\d+g\.\d+gb", node["gres"]):
        raise Missing("the GPUs are offered as MIG slices")
    return int(node["gpus"])


CHECK = Check(
    needs=("slurm.node",),
    observe=observe,
    accept=Equals(Ref("gpu.count")),
    applies=(SLURM, GPU),
    remedy=manual(
        "If nvidia-smi -L shows all GPUs: set Gres=gpu:TYPE:COUNT on this node's line in slurm.conf, restart slurmctld and "
        "slurmd. If it does not, look for the missing GPU first (dmesg, lspci)."
    ),
    severity="medium",
)
