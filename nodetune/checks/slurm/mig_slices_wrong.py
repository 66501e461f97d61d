"""Slurm offers other MIG slices than the GPUs have.

Why it matters: Slices that Slurm does not know idle while jobs wait. With more in Gres than slurmd finds, the node is invalid,
and Slurm drains it. A layout that was changed after slurmd started shows here too. Gres with whole GPUs (gpu:8) on divided
GPUs gives a job a GPU on which nothing runs outside its slices.
Healthy exception: With MIG, Slurm may offer slices without their profile (gpu:56): their number counts. AutoDetect=nvml names
a slice after its memory in GiB, without +me: 1g.16gb is an H200's 1g.18gb.
Confirm manually: scontrol show node $(hostname -s) | grep Gres; nvidia-smi mig -lgi
Side effects of the fix: slurmctld and this slurmd restart; running jobs stay.
Sources: https://slurm.schedmd.com/gres.html#MIG_Management ;
https://github.com/SchedMD/slurm (src/plugins/gpu/nvml/gpu_nvml.c: the name of a slice)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from nodetune.api import GPU, SLURM, Absent, Check, Empty, FactsView, manual
from nodetune.foundation import text

PROFILE = re.compile(r"(\d{1,2})g\.(\d{1,4})gb", re.IGNORECASE)
SLICE = re.compile(r"\bgpu:[\w.+-]{0,99}?(\d{1,2}g\.\d{1,4}gb)[\w.+-]{0,19}:(\d{1,5})\b", re.IGNORECASE)
SMALLEST_SHARE = 0.85
"""Of the memory in a profile's name, what its slice has in GiB: 16 of 18 on an H200."""


def observe(facts: FactsView) -> str | Absent:
    there: Counter[str] = Counter()
    for slices in facts["gpu.mig_devices"].values():
        for profile, count in slices.items():
            found = PROFILE.search(profile)
            there[found[0].lower() if found else profile] += count
    if not +there:
        return Absent("no GPU is divided")
    node = facts.readable("slurm.registered") or facts["slurm.node"]
    offered: Counter[str] = Counter()
    for profile, count in SLICE.findall(re.sub(r"\([^()]*\)", "", node["gres"])):
        offered[_named(profile.lower(), there)] += int(count)
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


def _named(offered: str, there: Iterable[str]) -> str:
    """Return the profile that Slurm means: of as many compute slices, and of that memory."""
    for profile in there:
        ours, theirs = PROFILE.match(profile), PROFILE.match(offered)
        if ours and theirs and ours[1] == theirs[1]:
            size = int(ours[2])
            if size * SMALLEST_SHARE <= int(theirs[2]) <= size:
                return profile
    return offered


CHECK = Check(
    needs=("slurm.node", "slurm.registered", "gpu.mig_devices"),
    observe=observe,
    accept=Empty("the slices that there are"),
    applies=(SLURM, GPU),
    remedy=manual(
        "Write what slurmd -G lists into Gres= of this node's line in slurm.conf, by the names there, such as "
        "Gres=gpu:1g.16gb:56, with AutoDetect=nvml in gres.conf, and restart slurmctld and slurmd. Or bring the layout back "
        "that the site file names (mig-layout-unwanted)."
    ),
    severity="medium",
    part_of="mig-layout-unwanted",
)
