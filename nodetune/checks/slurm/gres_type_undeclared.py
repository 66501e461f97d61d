"""This node has a generic resource that GresTypes does not list.

Why it matters: slurmctld manages only resources that GresTypes names. Shards and MPS of a GPU (Gres=gpu:8,shard:64) that it
does not name cannot be requested: such jobs are rejected. gpus-not-all-offered judges gpu itself.
Confirm manually: scontrol show config | grep GresTypes; scontrol show node $(hostname -s) | grep Gres
Side effects of the fix: slurmctld and all slurmd restart; jobs go on.
Sources: https://slurm.schedmd.com/slurm.conf.html#OPT_GresTypes ; https://slurm.schedmd.com/gres.html#Sharding
"""

from __future__ import annotations

import re

from nodetune.api import SLURM, Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared.slurm_settings import words


def observe(facts: FactsView) -> list[str] | Absent:
    listed = re.sub(r"\([^()]*\)", "", facts["slurm.node"]["gres"]).split(",")
    names = {each.partition(":")[0].strip().lower() for each in listed} - {"", "gpu"}
    return (
        sorted(names - words(facts["slurm.config"]["settings"], "grestypes")) if names else Absent("only GPUs, or none")
    )


CHECK = Check(
    needs=("slurm.node", "slurm.config"),
    observe=observe,
    accept=Empty("all names of the node's Gres"),
    applies=(SLURM,),
    remedy=manual("Add the named resources to GresTypes in slurm.conf, and restart slurmctld and all slurmd."),
    severity="low",
)
