"""NVML does not answer.

Why it matters: NVML is the interface to the NVIDIA driver. Without it no CUDA program starts, and nothing about the
GPUs can be read. The driver is not loaded, or its libraries and its kernel module have different versions. The usual
cause is a package update under a loaded driver.
Healthy exception: A host whose GPUs are all passed through to virtual machines needs no NVIDIA driver.
Confirm manually: nvidia-smi
Side effects of the fix: Reloading the driver or rebooting ends every GPU job on the host.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html
"""

from __future__ import annotations

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, Absent, Check, Equals, FactAbsentError, FactsView, Unread, repair


def observe(facts: FactsView) -> str | Unread:
    devices = facts["pci.devices"]
    if not {devices[bdf]["driver"] for bdf in facts["pci.gpus"] if bdf in devices} & {"nvidia", None}:
        raise FactAbsentError("every GPU is bound to a driver other than NVIDIA's (passed through, or nouveau)")
    if isinstance(facts.fact("gpu.nvml_status"), Absent):
        return Unread("no NVML library on this host: the driver may be in a container")
    status: str = facts["gpu.nvml_status"]
    return status


CHECK = Check(
    needs=("gpu.nvml_status", "pci.gpus", "pci.devices"),
    observe=observe,
    accept=Equals("ok"),
    applies=(GPU_ON_PCI, NOT_CONTAINER),
    remedy=repair(
        "Compare cat /proc/driver/nvidia/version with the installed libraries (ls -l /usr/lib/*/libnvidia-ml.so.*). "
        "If the versions differ, end all GPU programs and reload the modules (rmmod nvidia_uvm nvidia_drm "
        "nvidia_modeset nvidia; modprobe nvidia), or reboot. If the driver is not loaded: modprobe nvidia, then read "
        "dmesg | grep -i nvrm."
    ),
    severity="critical",
    name="NVML",
    stability="stable",
)
