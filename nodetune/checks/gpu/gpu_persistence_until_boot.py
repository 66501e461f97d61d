"""Persistence mode is on only until the next boot.

Why it matters: The driver forgets the mode at each boot. Here a user turned it on with nvidia-smi, while nvidia-persistenced
is disabled, has failed or is not installed, and no unit, script, cron table or udev rule turns it on again. After the boot,
each job waits for the GPUs to initialise, and power limits and clocks are lost with the last client.
Confirm manually: systemctl status nvidia-persistenced; grep -rs 'nvidia-smi.*-pm' /etc/systemd/system /etc/rc.local /etc/cron.d
Side effects of the fix: None now: it starts the daemon, or a unit at boot.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceCommands.html (nvmlDeviceSetPersistenceMode) ;
https://docs.nvidia.com/deploy/driver-persistence/persistence-daemon.html
"""

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, SYSTEMD, Check, Equals, FactAbsentError, FactsView, gpu
from nodetune.checks.shared import kept_at_boot

DAEMON, MODE = "nvidia-persistenced", "persistence_mode"


def observe(facts: FactsView) -> str:
    """Leave a daemon that runs and is not kept, also outside its unit, to persistenced-not-running."""
    if set(facts["gpu.persistence_mode"].values()) != {"enabled"}:
        raise FactAbsentError("persistence mode is off, which gpu-persistence-mode-off reports")
    if kept_at_boot.kept_by(facts, MODE, DAEMON):
        return "on"
    if (facts.get(f"services.{DAEMON}") or {}).get("active") == "active" or facts["services.processes"].get(DAEMON):
        raise FactAbsentError(f"{DAEMON} runs")
    return "on until the next boot"


CHECK = Check(
    needs=("gpu.persistence_mode", "services.processes", *kept_at_boot.needs(MODE, DAEMON)),
    observe=observe,
    accept=Equals("on"),
    set="enabled",
    applies=(GPU_ON_PCI, NOT_CONTAINER, SYSTEMD),
    remedy=gpu(MODE),
    severity="low",
    name="persistence mode",
)
