"""Fabric Manager is not running on a host with NVSwitches.

Why it matters: Fabric Manager configures the switches between the GPUs. Without it, CUDA refuses to start on every GPU
(error 802, system not yet initialized), or the fabric stays incomplete and NCCL falls back to PCIe. A virtual machine
that has the NVSwitches runs Fabric Manager itself (full passthrough).
Healthy exception: A driver container brings its own Fabric Manager.
Does not gate: A restart of the service looks the same for a moment.
Confirm manually: systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A2 Fabric
Side effects of the fix: Starting it needs idle GPUs; restarting it can end running CUDA programs.
Sources: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html ;
https://github.com/NVIDIA/NVSentinel/issues/883
"""

from nodetune.api import NOT_CONTAINER, SYSTEMD, Check, Equals, FactsView, service
from nodetune.checks.services._units import NVSWITCH_NEEDS, require_nvswitch, state


def observe(facts: FactsView) -> str:
    """Count a process outside the unit (in a driver container) too."""
    require_nvswitch(facts)
    unit = facts.get("services.nvidia-fabricmanager")
    said = state(unit)
    if said.startswith("running"):
        return said
    processes = facts.readable("services.processes", {}) if said == "failed" else facts["services.processes"]
    return "running" if processes.get("nv-fabricmanager") else said


CHECK = Check(
    needs=("services.nvidia-fabricmanager", "services.processes", *NVSWITCH_NEEDS),
    observe=observe,
    accept=Equals("running"),
    set="enabled",
    applies=(NOT_CONTAINER, SYSTEMD),
    remedy=service("nvidia-fabricmanager", disruption="idle GPU"),
    severity="critical",
    name="Fabric Manager",
)
