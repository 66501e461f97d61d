"""nvidia-persistenced is installed but not running.

Why it matters: nvidia-persistenced keeps the driver loaded between jobs. Without it, every job start initializes the
GPUs again (seconds on a node with eight of them), and a power limit or clock lock set at boot is lost with the last
client. The check does not apply where persistence mode is on by other means (nvidia-smi -pm 1, the legacy way).
Confirm manually: systemctl status nvidia-persistenced
Side effects of the fix: None for running work. On Grace never stop it again while jobs run: the GPU's memory is a NUMA
node that goes away with persistence.
Sources: https://docs.nvidia.com/deploy/driver-persistence/persistence-daemon.html
"""

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, SYSTEMD, Check, Equals, FactAbsentError, FactsView, service
from nodetune.checks.services._units import state


def observe(facts: FactsView) -> str:
    """Count a process outside the unit (in a driver container) too."""
    unit = facts["services.nvidia-persistenced"]
    if unit["active"] == "active":
        return state(unit)
    modes = set(facts.readable("gpu.persistence_mode", {}).values())
    if modes == {"enabled"}:
        raise FactAbsentError("persistence mode is on without it")
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
