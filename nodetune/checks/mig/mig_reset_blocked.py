"""The nvidia_drm module blocks the GPU reset that a MIG change waits for.

Why it matters: On Ampere the mode changes with a reset, and a reset is refused while nvidia_drm holds the GPU.
Confirm by hand: lsmod | grep nvidia_drm; nvidia-smi --query-gpu=index,mig.mode.pending --format=csv
Side effects of the fix: A display on this GPU goes dark.
Sources: https://github.com/NVIDIA/mig-parted (README, known issues)
"""

from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    current, generations = facts["gpu.mig_mode"], facts["gpu.architecture"]
    loaded = "nvidia_drm" in facts["modules.loaded"]
    return {
        name: f"{current[name]}, {pending} is waiting" if loaded and pending != current[name] else ""
        for name, pending in facts["gpu.mig_mode_pending"].items()
        if generations.get(name) == "ampere"
    }


CHECK = Check(
    needs=("gpu.mig_mode", "gpu.mig_mode_pending", "gpu.architecture", "modules.loaded"),
    observe=observe,
    accept=Empty("no change waiting behind nvidia_drm"),
    applies=(GPU,),
    remedy=manual("Stop the display manager, modprobe -r nvidia_drm nvidia_modeset, then nvidia-smi -i INDEX -r."),
    severity="low",
)
