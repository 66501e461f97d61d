"""The persistence daemon is installed but does not run.

Why it matters: It is what keeps the driver loaded between jobs. Without it every job start initializes the GPUs again
(seconds on a node with eight of them), and a power limit or clock lock set at boot is gone with the last client. Where
persistence mode is on by other means (nvidia-smi -pm 1, the legacy way) this is not judged.
Confirm by hand: systemctl status nvidia-persistenced
Side effects of the fix: None for running work. On Grace never stop it again while jobs run: the GPU's memory is a NUMA
node that goes away with persistence.
Sources: https://docs.nvidia.com/deploy/driver-persistence/persistence-daemon.html
"""

from nodetune.checks.services._units import SYSTEMD, state
from nodetune.conditions import GPU_ON_PCI, NOT_CONTAINER
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import service
from nodetune.view import Missing, View


def observe(facts: View) -> str:
    """A daemon that runs outside the unit (in a driver container) does as well."""
    unit = facts["services.nvidia-persistenced"]
    if unit["active"] == "active":
        return state(unit)
    modes = set(facts.readable("gpu.persistence_mode", {}).values())
    if modes == {"enabled"}:
        raise Missing("persistence mode is on without it")
    return "running" if facts["services.processes"].get("nvidia-persistenced") else state(unit)


CHECK = Check(
    needs=("services.nvidia-persistenced", "services.processes", "gpu.persistence_mode"),
    observe=observe,
    accept=Equals("running"),
    set="enabled",
    applies=(GPU_ON_PCI, NOT_CONTAINER, SYSTEMD),
    remedy=service("nvidia-persistenced"),
    severity="medium",
)
