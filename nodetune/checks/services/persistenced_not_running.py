"""The persistence daemon is installed but does not run.

Why it matters: Nothing keeps the driver loaded between jobs. Every job start initializes the GPUs again (seconds on a
node with eight of them), and a power limit or clock lock set at boot is gone with the last client.
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
from nodetune.view import View


def observe(facts: View) -> str:
    """A daemon that runs outside the unit (in a driver container) does as well."""
    unit = facts["services.nvidia-persistenced"]
    outside = unit["active"] != "active" and facts["services.processes"].get("nvidia-persistenced")
    return "running" if outside else state(unit)


CHECK = Check(
    needs=("services.nvidia-persistenced", "services.processes"),
    observe=observe,
    accept=Equals("running"),
    set="enabled",
    applies=(GPU_ON_PCI, NOT_CONTAINER, SYSTEMD),
    remedy=service("nvidia-persistenced"),
    severity="high",
)
