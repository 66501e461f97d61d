"""Slurm allocates by a plugin that does not track GPUs.

Why it matters: select/linear gives whole nodes and is not designed to track GPUs. Jobs that ask with --gpus or --gpus-per-node
are rejected, and MPS and shards of a GPU do not work. cons_tres is the default of current releases; it also gives whole nodes
where a partition says Exclusive=NODE.
Confirm manually: scontrol show config | grep SelectType
Side effects of the fix: slurmctld loses all information about jobs when it changes the plugin: drain the cluster first.
Sources: https://slurm.schedmd.com/slurm.conf.html#OPT_SelectType ; https://slurm.schedmd.com/gres.html
"""

from __future__ import annotations

from nodetune.api import GPU, SLURM, Absent, Check, FactsView, Not, manual
from nodetune.api.predicates import OneOf


def observe(facts: FactsView) -> str | Absent:
    """Return the plugin; where no line names it, the default of the release decides."""
    return facts["slurm.cluster"].get("selecttype") or Absent("slurm.conf leaves SelectType to the default")


CHECK = Check(
    needs=("slurm.cluster",),
    observe=observe,
    accept=Not(OneOf(["select/linear", "select/cons_res"])),
    applies=(SLURM, GPU),
    remedy=manual(
        "With no job in the cluster, write SelectType=select/cons_tres and SelectTypeParameters=CR_Core_Memory into slurm.conf, "
        "and restart slurmctld and all slurmd."
    ),
    severity="low",
)
