"""The NVIDIA libraries on disk are of another version than the driver in the kernel.

Why it matters: Every new CUDA program fails ("Driver/library version mismatch") while those that run go on. Mostly an
unattended update replaced the libraries under a loaded driver; fabric manager and IMEX must move with it as well.
Confirm by hand: cat /sys/module/nvidia/version; nvidia-smi --version
Side effects of the fix: All GPU programs end: the driver is loaded anew, or the node reboots.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html (NVML_ERROR_LIB_RM_VERSION_MISMATCH) ;
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from __future__ import annotations

from nodetune.expect import Equals
from nodetune.model import Check, Ref
from nodetune.remedies import manual
from nodetune.view import View


def library_versions(facts: View) -> dict[str, str]:
    """NVML gives its own version with CUDA's before it (13.580.65.06): that is cut off."""
    found: dict[str, str] = dict(facts.get("kernel.nvidia_libraries", {}))
    answering = facts.readable("gpu.library_version")
    if answering:
        driver = facts["kernel.nvidia_module_version"]
        found["NVML"] = driver if answering.endswith("." + driver) else answering
    return found


CHECK = Check(
    observe=library_versions,
    needs=("kernel.nvidia_libraries", "kernel.nvidia_module_version", "gpu.library_version"),
    accept=Equals(Ref("kernel.nvidia_module_version")),
    remedy=manual(
        "Drain the node, then reboot, or without clients: systemctl stop nvidia-persistenced nvidia-fabricmanager; "
        "modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nvidia; modprobe nvidia. Then hold the "
        "driver packages back from automatic updates (apt-mark hold, dnf versionlock)"
    ),
    severity="critical",
)
