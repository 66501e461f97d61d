"""Detect hosts that pass devices to virtual machines: their isolation must stay as it is."""

from __future__ import annotations

from nodetune.api import FactsView

NEEDS = ("pci.devices", "modules.loaded", "services.libvirtd", "services.virtqemud")
VFIO_MODULES = ("vfio_pci", "vfio_pci_core", "mlx5_vfio_pci", "nvidia_vgpu_vfio", "nvgrace_gpu_vfio_pci")


def hypervisor(facts: FactsView) -> str:
    """Return why the host counts as a hypervisor, or an empty text. In doubt it counts as one."""
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
