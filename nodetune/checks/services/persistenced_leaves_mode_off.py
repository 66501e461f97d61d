"""The persistence daemon leaves persistence mode off at the next boot.

Why it matters: Ubuntu's packages start it with --no-persistence-mode: the service is active, which looks right, and
yet the driver unloads between jobs unless something else turns the mode on after every boot. Judged only while the mode is on;
where it is off now, that is reported by itself.
Confirm by hand: pgrep -a nvidia-persiste
Side effects of the fix: The daemon restarts. Do it on an idle node on Grace, where switching the mode off and on takes
the GPU's memory away from the NUMA nodes.
Sources: https://docs.nvidia.com/deploy/driver-persistence/persistence-daemon.html ;
https://github.com/Azure/azhpc-images (components/configure_nvidia_persistence.sh)
"""

from nodetune.conditions import GPU_ON_PCI, NOT_CONTAINER
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> str:
    unit = facts["services.nvidia-persistenced"]
    if unit["active"] != "active":
        raise Missing("the persistence daemon does not run")
    if "disabled" in facts.readable("gpu.persistence_mode", {}).values():
        raise Missing("persistence mode is off already, which is reported by itself")
    return "off" if "--no-persistence-mode" in (unit["cmdline"] or unit["exec"]).split() else "on"


CHECK = Check(
    needs=("services.nvidia-persistenced", "gpu.persistence_mode"),
    observe=observe,
    accept=Equals("on"),
    applies=(GPU_ON_PCI, NOT_CONTAINER),
    remedy=manual(
        "systemctl edit nvidia-persistenced, and write:\n[Service]\nExecStart=\n"
        "ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --persistence-mode --verbose\n"
        "then: systemctl restart nvidia-persistenced"
    ),
    severity="low",
)
