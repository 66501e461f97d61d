"""The persistence daemon is not installed.

Why it matters: Without a client the driver gives up a GPU: the next program waits while it is initialized again, and
power limits, clock locks and ECC counters since load are lost. nvidia-persistenced is the client that is always there.
Confirm by hand: systemctl cat nvidia-persistenced
Side effects of the fix: None for running work.
Sources: https://docs.nvidia.com/deploy/driver-persistence/persistence-daemon.html
"""

from nodetune.checks.services._units import SYSTEMD
from nodetune.conditions import GPU_ON_PCI, NOT_CONTAINER
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    """A daemon that runs without a unit (in a driver container) does as well."""
    if facts.get("services.nvidia-persistenced") or facts["services.processes"].get("nvidia-persistenced"):
        return "installed"
    return "not installed"


CHECK = Check(
    needs=("services.nvidia-persistenced", "services.processes"),
    observe=observe,
    accept=Equals("installed"),
    applies=(GPU_ON_PCI, NOT_CONTAINER, SYSTEMD),
    remedy=manual(
        "Install the driver's own package of it (Ubuntu: nvidia-compute-utils-VERSION; NVIDIA's repository: "
        "nvidia-persistenced), then: systemctl enable --now nvidia-persistenced"
    ),
    severity="medium",
)
