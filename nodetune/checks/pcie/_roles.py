"""Whether the host hands devices to virtual machines: isolation must then stay as it is."""

from __future__ import annotations

from nodetune.view import View

NEEDS = ("pci.devices", "modules.loaded", "services.libvirtd", "services.virtqemud")
VFIO_MODULES = ("vfio_pci", "vfio_pci_core", "mlx5_vfio_pci", "nvidia_vgpu_vfio", "nvgrace_gpu_vfio_pci")


def hypervisor(facts: View) -> str:
    """Why the host counts as a hypervisor; empty where nothing says so. Rather once too often than once too rarely."""
    for bdf, device in facts["pci.devices"].items():
        if "vfio" in (device["driver"] or ""):
            return f"{bdf} is bound to {device['driver']}"
    for name in VFIO_MODULES:
        if name in facts.get("modules.loaded", []):
            return f"the module {name} is loaded"
    for unit in ("libvirtd", "virtqemud"):
        state = facts.get(f"services.{unit}", {})
        if state.get("active") == "active" or state.get("enabled") in ("enabled", "alias"):
            return f"{unit} is in use"
    return ""
