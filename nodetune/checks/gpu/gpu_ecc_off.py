"""ECC is off on a GPU whose factory default is on.

Why it matters: Without ECC, a bit flip reaches results and checkpoints without a trace. The check ignores GPUs whose
factory default is off (workstation and GeForce cards). If the default is unknown, it is on for data-centre GPUs with
HBM, and where a GPU of the same model has ECC on.
Healthy exception: Workstation and GeForce cards leave the factory with ECC off.
Does not gate: Jobs run, and a site may have decided so.
Confirm manually: nvidia-smi --query-gpu=index,ecc.mode.current,ecc.mode.pending --format=csv
Side effects of the fix: Takes effect with the next GPU reset or reboot. On GDDR cards about 6 % of memory and some
bandwidth go to ECC.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

import re

from nodetune.api import GPU, Check, Equals, FactsView, gpu
from nodetune.checks.shared.gpu_peers import MODELS

HBM = re.compile(r"\b(P100|V100S?|A30|[AH][18]00|H20|H200|GH200|G?B[23]00)\b(?!.*-\d+[ABCQ]$)")
"""Data-centre GPUs with HBM, which leave the factory with ECC on; not their vGPUs."""

PENDING = "enabled, disabled after the next reset or boot"


def observe(facts: FactsView) -> dict[str, str]:
    """Return the ECC mode of each GPU, and whether the next reset or boot turns it off."""
    modes, pending = facts["gpu.ecc_mode"], facts.readable("gpu.ecc_mode_pending") or {}
    default = _default(facts, modes)
    return {
        name: PENDING if mode == "enabled" and pending.get(name) == "disabled" else mode
        for name, mode in modes.items()
        if default.get(name) == "enabled"
    }


def _default(facts: FactsView, modes: dict[str, str]) -> dict[str, str]:
    """Return the factory default of each GPU: if nvidia-smi does not print it, by its model or its peers."""
    if facts.readable("gpu.ecc_mode_default") is not None:
        return dict(facts["gpu.ecc_mode_default"])
    names = facts.readable("gpu.names", {})
    model_of = facts.readable("gpu.pci_device_id") or names
    on = {model_of.get(name) for name, mode in modes.items() if mode == "enabled" or HBM.search(names.get(name, ""))}
    return {name: "enabled" for name in modes if model_of.get(name) in on} or dict(facts["gpu.ecc_mode_default"])


CHECK = Check(
    needs=("gpu.ecc_mode", "gpu.ecc_mode_pending", "gpu.ecc_mode_default", *MODELS),
    observe=observe,
    accept=Equals("enabled"),
    set="enabled",
    applies=(GPU,),
    remedy=gpu("ecc_mode", "idle GPU"),
    severity="critical",
    name="ECC",
)
