"""ECC is off on a GPU whose factory default is on.

Why it matters: Without ECC, a bit flip reaches results and checkpoints without a trace. The check ignores GPUs whose
factory default is off (workstation and GeForce cards).
Healthy exception: Workstation and GeForce cards leave the factory with ECC off.
Does not gate: Jobs run, and a site may have decided so.
Confirm manually: nvidia-smi --query-gpu=index,ecc.mode.current,ecc.mode.pending --format=csv
Side effects of the fix: Takes effect with the next GPU reset or reboot. On GDDR cards about 6 % of memory and some
bandwidth go to ECC.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, Equals, FactsView, gpu


def observe(facts: FactsView) -> dict[str, str]:
    """Return the ECC mode of each GPU; where ECC is on, the mode after the next boot or reset."""
    default, pending = facts["gpu.ecc_mode_default"], facts.readable("gpu.ecc_mode_pending") or {}
    modes = facts["gpu.ecc_mode"].items()
    return {
        name: pending.get(name, mode) if mode == "enabled" else mode
        for name, mode in modes
        if default.get(name) == "enabled"
    }


CHECK = Check(
    needs=("gpu.ecc_mode", "gpu.ecc_mode_pending", "gpu.ecc_mode_default"),
    observe=observe,
    accept=Equals("enabled"),
    set="enabled",
    applies=(GPU,),
    remedy=gpu("ecc_mode", "idle GPU"),
    severity="critical",
)
