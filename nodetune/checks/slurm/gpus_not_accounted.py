"""Slurm's accounting does not record GPUs.

Why it matters: Without gres/gpu in AccountingStorageTRES, sacct and sreport show no GPU hours, limits and fair share do not
count them, and nobody sees jobs that leave their GPUs idle: gres/gpu also records their memory and utilization
(gres/gpumem, gres/gpuutil), where gres.conf has AutoDetect=nvml.
Confirm manually: scontrol show config | grep AccountingStorageTRES; sacctmgr show tres
Side effects of the fix: slurmctld restarts. Earlier jobs keep no record of their GPUs.
Sources: https://slurm.schedmd.com/slurm.conf.html#OPT_AccountingStorageTRES ; https://slurm.schedmd.com/gres.html
"""

from __future__ import annotations

from nodetune.api import GPU, SLURM, Absent, Check, FactsView, manual
from nodetune.api.predicates import Contains
from nodetune.checks.shared.slurm_settings import words


def observe(facts: FactsView) -> list[str] | Absent:
    settings = facts["slurm.cluster"]
    if not settings.get("accountingstoragetype", "").endswith("slurmdbd"):
        return Absent("this cluster keeps no accounting")
    return sorted(words(settings, "accountingstoragetres"))


CHECK = Check(
    needs=("slurm.cluster",),
    observe=observe,
    accept=Contains("gres/gpu"),
    applies=(SLURM, GPU),
    remedy=manual(
        "Add gres/gpu to AccountingStorageTRES in slurm.conf, with the untyped name also where typed ones (gres/gpu:h200) are "
        "listed, and restart slurmctld."
    ),
    severity="info",
)
