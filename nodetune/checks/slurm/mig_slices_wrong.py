"""Slurm offers other MIG slices than the GPUs have.

Why it matters: Slices that Slurm does not know idle while jobs wait. With more in Gres than slurmd finds, the node is invalid,
and Slurm drains it. A layout that was changed after slurmd started shows here too. Gres with whole GPUs (gpu:8) on divided
GPUs gives a job a GPU on which nothing runs outside its slices.
Healthy exception: With MIG, Slurm may offer slices without their profile (gpu:56): their number counts.
Confirm manually: scontrol show node $(hostname -s) | grep Gres; nvidia-smi mig -lgi
Side effects of the fix: slurmctld and this slurmd restart; running jobs stay.
Sources: https://slurm.schedmd.com/gres.html#MIG_Management
"""

from __future__ import annotations

import re
from collections import Counter

from nodetune.api import GPU, SLURM, Absent, Check, Empty, FactsView, manual
from nodetune.foundation import text

SLICE = re.compile(r"\bgpu:(?:[\w.-]{1,99}_)?(\d{1,2}g\.\d{1,4}gb(?:\+[\w.]{1,9})?):(\d{1,5})\b", re.IGNORECASE)


def observe(facts: FactsView) -> str | Absent:
    there: Counter[str] = Counter()
    for slices in facts["gpu.mig_devices"].values():
        there.update({profile.lower(): count for profile, count in slices.items()})
    if not +there:
        return Absent("no GPU is divided")
    node = facts.readable("slurm.registered") or facts["slurm.node"]
    offered: Counter[str] = Counter()
    for profile, count in SLICE.findall(re.sub(r"\([^()]*\)", "", node["gres"])):
        offered[profile.lower()] += int(count)
    whole = int(node["gpus"]) - sum(offered.values())
    undivided = sum(not slices for slices in facts["gpu.mig_devices"].values())
    if not offered:
        total = sum(there.values()) + undivided
        return "" if whole == total else f"{text.count(whole, 'GPU')} of {total} slices and whole GPUs"
    wrong = [
        f"{offered[each]} of {there[each]} {each}"
        for each in sorted({*offered, *there})
        if offered[each] != there[each]
    ]
    return text.names(wrong) if wrong else ""


CHECK = Check(
    needs=("slurm.node", "slurm.registered", "gpu.mig_devices"),
    observe=observe,
    accept=Empty("the slices that there are"),
    applies=(SLURM, GPU),
    remedy=manual(
        "Write what there is into Gres= of this node's line in slurm.conf, such as Gres=gpu:1g.18gb:56, with "
        "AutoDetect=nvml in gres.conf, and restart slurmctld and slurmd. Or bring the layout back that "
        "the site file names (mig-layout-unwanted)."
    ),
    severity="medium",
    part_of="mig-layout-unwanted",
)
