"""NVIDIA libraries do not match the loaded driver.

Why it matters: Every new CUDA program fails ("Driver/library version mismatch") while running programs continue.
Usually an unattended update replaced the libraries under a loaded driver. Fabric Manager and IMEX must have the
driver's version as well.
Healthy exception: A host whose driver is in a container has no libraries of its own.
Does not gate: If the driver refuses NVML, nvml-not-answering gates. Another library on disk may be one that jobs do
not load.
Confirm manually: cat /sys/module/nvidia/version; nvidia-smi --version
Side effects of the fix: All GPU programs end, because the driver is reloaded or the node reboots.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html (NVML_ERROR_LIB_RM_VERSION_MISMATCH) ;
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from __future__ import annotations

from nodetune.api import Check, Equals, FactsView, Ref, repair


def library_versions(facts: FactsView) -> dict[str, str]:
    """Return the version of each library.

    NVML puts CUDA's version first (13.580.65.06), and nvidia-smi leaves the last number out (580.65): both are the same.
    """
    answering = facts.readable("gpu.library_version")
    installed = facts.readable("kernel.nvidia_libraries") if answering else facts.get("kernel.nvidia_libraries")
    found: dict[str, str] = dict(installed or {})
    if answering:
        driver = facts["kernel.nvidia_module_version"]
        same = f".{answering}".endswith(f".{driver}") or f"{driver}.".startswith(f"{answering}.")
        found["NVML"] = driver if same else answering
    return found


CHECK = Check(
    observe=library_versions,
    needs=("kernel.nvidia_libraries", "kernel.nvidia_module_version", "gpu.library_version"),
    accept=Equals(Ref("kernel.nvidia_module_version")),
    remedy=repair(
        "Drain the node and reboot. If no client uses the driver, reload it instead: "
        "units=$(systemctl list-units --plain --no-legend --state=active 'nvidia-*.service' | cut -d' ' -f1); "
        "echo $units | xargs -r systemctl stop && modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nvidia && "
        "modprobe nvidia; echo $units | xargs -r systemctl start\nThen exclude the "
        "driver packages from automatic updates (apt-mark hold, dnf versionlock)"
    ),
    severity="critical",
)
