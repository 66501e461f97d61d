"""Fabric Manager starts again and again.

Why it matters: Each start configures the NVSwitches again. In between, CUDA programs do not start (error 802), and
running ones can fail. A service that systemd starts again after each end looks healthy at any given moment.
Confirm manually: systemctl show nvidia-fabricmanager -p NRestarts -p ActiveEnterTimestamp; journalctl -u nvidia-fabricmanager
Side effects of the fix: None: it only reports.
Sources: https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.systemd1.html (NRestarts) ;
https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from nodetune.api import NOT_CONTAINER, SYSTEMD, Check, Empty, FactsView, manual
from nodetune.checks.services._units import NVSWITCH_NEEDS, require_nvswitch
from nodetune.checks.shared.kernel_events import UPTIME, ago

MIN_RESTARTS = 3
STEADY_S = 3600
"""A service that has run for so long is past what made it start again, such as a driver that loaded late at boot."""
UNIT = "services.nvidia-fabricmanager"


def observe(facts: FactsView) -> str:
    require_nvswitch(facts)
    unit = facts[UNIT]
    restarts, since = unit.get("restarts") or 0, (unit.get("since_us") or 0) / 1e6
    running_s = facts[UPTIME] - since if unit["active"] == "active" else 0
    if restarts < MIN_RESTARTS or running_s >= STEADY_S:
        return ""
    return f"started again {restarts} times, last {ago(running_s)}" if running_s else f"started again {restarts} times"


CHECK = Check(
    needs=(UNIT, UPTIME, *NVSWITCH_NEEDS),
    observe=observe,
    accept=Empty("no repeated restarts"),
    applies=(NOT_CONTAINER, SYSTEMD),
    remedy=manual(
        "Drain the node and read why it ends: journalctl -u nvidia-fabricmanager and /var/log/fabricmanager.log. Usual "
        "causes: another version than the driver's, a GPU or NVSwitch that does not answer, or a GPU in use while it "
        "starts. Then restart it while no job runs."
    ),
    severity="medium",
    name="Fabric Manager",
    part_of="fabricmanager-not-running",
)
