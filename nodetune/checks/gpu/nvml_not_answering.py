"""NVML, the interface to the NVIDIA driver, does not answer.

Why it matters: Without it no CUDA program starts and nothing about the GPUs can be read: the driver is not loaded, or
its libraries and its kernel module are of different versions. The usual cause is a package update under a loaded
driver.
Confirm by hand: nvidia-smi
Side effects of the fix: Reloading the driver or rebooting ends every GPU job on the host.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html
"""

from nodetune.conditions import GPU_ON_PCI, NOT_CONTAINER
from nodetune.expect import Equals
from nodetune.model import Absent, Check, Unread
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> str | Unread:
    if not {facts["pci.devices"][bdf]["driver"] for bdf in facts["pci.gpus"]} & {"nvidia", None}:
        raise Missing("another driver than NVIDIA's has every GPU (passed through, or nouveau)")
    if isinstance(facts.fact("gpu.nvml_status"), Absent):
        return Unread("no NVML library on this host: the driver may live in a container")
    status: str = facts["gpu.nvml_status"]
    return status


CHECK = Check(
    needs=("gpu.nvml_status", "pci.gpus", "pci.devices"),
    observe=observe,
    accept=Equals("ok"),
    applies=(GPU_ON_PCI, NOT_CONTAINER),
    remedy=manual(
        "Compare cat /proc/driver/nvidia/version with the installed libraries (ls -l /usr/lib/*/libnvidia-ml.so.*). Versions "
        "differ: with all GPU programs ended, reload the modules (rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe "
        "nvidia), or reboot. Driver not loaded: modprobe nvidia, then read dmesg | grep -i nvrm."
    ),
    severity="critical",
    stability="stable",
)
