"""ECC is off on a GPU that comes with it on.

Why it matters: A flipped bit then goes into results and checkpoints without a trace. GPUs whose factory default is off
(workstation and GeForce cards) are left alone.
Confirm by hand: nvidia-smi --query-gpu=index,ecc.mode.current,ecc.mode.pending --format=csv
Side effects of the fix: Takes effect with the next GPU reset or reboot. On GDDR cards about 6 % of memory and some
bandwidth go to ECC.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import gpu
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    """The mode of each GPU that has ECC; where it is on, that which the next boot or reset will bring."""
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
