"""The shards of this node do not divide evenly among its GPUs.

Why it matters: Slurm spreads the shards of Gres=gpu:8,shard:64 evenly over the GPUs, unless gres.conf gives each GPU its own.
With a rest, or with fewer shards than GPUs, some GPUs take fewer jobs than others or none.
Confirm manually: scontrol show node $(hostname -s) | grep Gres
Side effects of the fix: slurmctld and this slurmd restart; running jobs stay.
Sources: https://slurm.schedmd.com/gres.html#Sharding
"""

from __future__ import annotations

import re

from nodetune.api import SLURM, Absent, Check, Empty, FactsView, manual
from nodetune.foundation import text


def observe(facts: FactsView) -> str | Absent:
    node = facts["slurm.node"]
    shards, gpus = re.search(r"\bshard:(?:[\w.-]*:)?(\d{1,6})\b", node["gres"]), int(node["gpus"])
    if not shards or not gpus:
        return Absent("no shards in Gres")
    return f"{text.count(int(shards[1]), 'shard')} for {text.count(gpus, 'GPU')}" if int(shards[1]) % gpus else ""


CHECK = Check(
    needs=("slurm.node",),
    observe=observe,
    accept=Empty("as many for each GPU"),
    applies=(SLURM,),
    remedy=manual(
        "Make the number of shards in Gres= a multiple of the number of GPUs, or give each GPU its own in gres.conf: "
        "Name=shard Count=8 File=/dev/nvidia0"
    ),
    severity="info",
)
