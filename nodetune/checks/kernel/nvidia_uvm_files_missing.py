"""nvidia_uvm is loaded, but its device files are missing.

Why it matters: Every CUDA program opens /dev/nvidia-uvm (profilers also nvidia-uvm-tools), and a container gets only
files that are there when it starts. CUDA fails there, while nvidia-smi and validators that use only NVML report a sound
node. Loading the module does not make the files: udev, nvidia-persistenced or nvidia-modprobe does.
Healthy exception: The first CUDA program makes them where nvidia-modprobe may run as root.
Confirm manually: ls -l /dev/nvidia-uvm* /run/nvidia/driver/dev/nvidia-uvm* /usr/bin/nvidia-modprobe
Side effects of the fix: None. Containers that run already have to be started again.
Sources: https://github.com/NVIDIA/gpu-operator/issues/2685 ;
https://docs.nvidia.com/cuda/cuda-installation-guide-linux/index.html#device-node-verification ;
https://github.com/NVIDIA/nvidia-container-toolkit/issues/50
"""

from __future__ import annotations

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, Absent, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> list[str] | Absent:
    if "nvidia_uvm" not in facts["modules.loaded"]:
        return Absent("the module nvidia_uvm is not loaded")
    files = facts["kernel.nvidia_uvm_files"]
    return [] if files["made_by"] else [f"{files['folder']}/{name}" for name in files["missing"]]


CHECK = Check(
    needs=("modules.loaded", "kernel.nvidia_uvm_files"),
    observe=observe,
    accept=Empty("the files of nvidia_uvm, or a program that makes them for any user"),
    applies=(NOT_CONTAINER, GPU_ON_PCI),
    remedy=manual(
        "As root: nvidia-modprobe -u -c 0. At each boot, the package nvidia-modprobe or the driver's udev rules do it. With "
        "a driver container (/run/nvidia/driver), start its pod again, then the pods with GPUs."
    ),
    severity="medium",
    name="missing files",
)
