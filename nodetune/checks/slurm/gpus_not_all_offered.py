"""Slurm does not offer the GPUs of the node.

Why it matters: With fewer GPUs in Gres, or without GresTypes=gpu, GPUs idle while jobs wait. With more than slurmd finds,
slurmd reports an invalid node, and Slurm drains it: so does AutoDetect=nvml where slurmd was built without NVML. The check
judges what slurmctld has (scontrol show node); where it does not answer, slurm.conf. A GPU that fell off the bus shows
here too.
Healthy exception: With MIG, Slurm may offer slices in place of whole GPUs.
Confirm manually: scontrol show node $(hostname -s) | grep Gres; nvidia-smi -L | wc -l
Side effects of the fix: A changed Gres= requires a restart of slurmctld and this slurmd; running jobs stay.
Sources: https://slurm.schedmd.com/gres.html ; https://slurm.schedmd.com/slurm.conf.html
"""

from __future__ import annotations

import re

from nodetune.api import GPU, SLURM, Check, Equals, FactAbsentError, FactsView, Ref, manual
from nodetune.checks.shared.slurm_settings import cannot_detect, words

TOO_FEW = re.compile(r"gres/gpu count (?:.*\((\d+) < (\d+)\)|too low)")
"""Why slurmctld refuses the registration of a node. Older releases give no numbers."""


def observe(facts: FactsView) -> int | str:
    node = facts.readable("slurm.registered") or facts["slurm.node"]
    if re.search(r"\dg\.\d+gb", node["gres"]) or any(facts.readable("gpu.mig_devices", {}).values()):
        raise FactAbsentError("the GPUs are offered as MIG slices")
    refused = TOO_FEW.search(node.get("reason", ""))
    if refused and re.search("DRAIN|INVAL", node["state"]):
        number = f"{refused[1]} of {refused[2]}" if refused[1] else "too few"
        return f"slurmd finds {number}: Slurm drained the node"
    return 0 if "state" not in node and _no_types(facts) else int(node["gpus"])


def _no_types(facts: FactsView) -> bool:
    config = facts.readable("slurm.config")
    return bool(config) and "gpu" not in words(config["settings"], "grestypes")


def cause(facts: FactsView, _subjects: tuple[str, ...]) -> str:
    if _no_types(facts):
        return "slurm.conf has no GresTypes=gpu"
    word = cannot_detect(facts)
    return f"gres.conf has AutoDetect={word}, and this slurmd has no gpu_{word}.so" if word else ""


CHECK = Check(
    needs=("slurm.node", "slurm.registered", "slurm.config", "slurm.gres", "slurm.detects", "gpu.mig_devices"),
    observe=observe,
    cause=cause,
    accept=Equals(Ref("gpu.count")),
    applies=(SLURM, GPU),
    remedy=manual(
        "If nvidia-smi -L does not show all GPUs, look for the missing one first (dmesg, lspci). If it does: write "
        "GresTypes=gpu into slurm.conf and Gres=gpu:TYPE:COUNT on this node's line, and into gres.conf: "
        "NodeName=NODE AutoDetect=off Name=gpu Type=TYPE File=/dev/nvidia[0-7] (the files that ls /dev/nvidia[0-9]* shows). "
        "Restart slurmctld and slurmd. AutoDetect=nvml instead of File= works only where slurmd -G then lists the GPUs. If "
        "the node is still drained: scontrol update NodeName=NODE State=RESUME"
    ),
    severity="high",
    name="GPUs in Slurm",
    part_of=("gpu-lost", "gpu-missing"),
)
