"""nvidia-persistenced starts with persistence mode off.

Why it matters: Ubuntu's packages start the daemon with --no-persistence-mode. The service is active, which looks
right, yet the driver unloads between jobs unless something else turns the mode on after every boot. The check applies
only while the mode is on; gpu-persistence-mode-off reports a mode that is off.
Confirm manually: pgrep -a nvidia-persiste
Side effects of the fix: The daemon restarts. Do it on an idle node on Grace, where switching the mode off and on takes
the GPU's memory away from the NUMA nodes.
Sources: https://docs.nvidia.com/deploy/driver-persistence/persistence-daemon.html ;
https://github.com/Azure/azhpc-images (components/configure_nvidia_persistence.sh)
"""

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, Check, Equals, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    unit = facts["services.nvidia-persistenced"]
    if unit["active"] != "active":
        raise FactAbsentError("nvidia-persistenced is not running")
    if facts.get("persisted.gpu.persistence_mode"):
        raise FactAbsentError("something else turns persistence mode on at each boot")
    if "disabled" in facts.readable("gpu.persistence_mode", {}).values():
        raise FactAbsentError("persistence mode is off already, which gpu-persistence-mode-off reports")
    return "off" if "--no-persistence-mode" in (unit["cmdline"] or unit["exec"]).split() else "on"


CHECK = Check(
    needs=("services.nvidia-persistenced", "gpu.persistence_mode", "persisted.gpu.persistence_mode"),
    observe=observe,
    accept=Equals("on"),
    applies=(GPU_ON_PCI, NOT_CONTAINER),
    remedy=manual(
        "systemctl edit nvidia-persistenced, and write:\n[Service]\nExecStart=\n"
        "ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --persistence-mode --verbose\n"
        "then: systemctl restart nvidia-persistenced"
    ),
    severity="low",
    name="persistenced mode",
)
