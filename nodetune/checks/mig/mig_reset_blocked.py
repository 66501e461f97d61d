"""nvidia_drm blocks the GPU reset of a MIG mode change.

Why it matters: On Ampere, the MIG mode changes with a GPU reset. The driver refuses the reset while nvidia_drm uses the
GPU.
Confirm manually: lsmod | grep nvidia_drm; nvidia-smi --query-gpu=index,mig.mode.pending --format=csv
Side effects of the fix: A display on this GPU goes dark.
Sources: https://github.com/NVIDIA/mig-parted (README, known issues)
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    current, generations = facts["gpu.mig_mode"], facts["gpu.architecture"]
    loaded = "nvidia_drm" in facts["modules.loaded"]
    return {
        name: f"{current[name]}, {pending} is pending" if loaded and pending != current[name] else ""
        for name, pending in facts["gpu.mig_mode_pending"].items()
        if generations.get(name) == "ampere"
    }


CHECK = Check(
    needs=("gpu.mig_mode", "gpu.mig_mode_pending", "gpu.architecture", "modules.loaded"),
    observe=observe,
    accept=Empty("no pending change that nvidia_drm blocks"),
    applies=(GPU,),
    remedy=manual("Stop the display manager, run modprobe -r nvidia_drm nvidia_modeset, then nvidia-smi -i INDEX -r."),
    severity="low",
    part_of="mig-mode-change-pending",
    name="MIG mode",
)
