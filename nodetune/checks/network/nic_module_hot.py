"""The transceiver or the chip of a network card is too hot.

Why it matters: The card lowers its speed or switches the port off, and errors on the link grow before. Jobs wait for this
link. The check counts the last week of this boot.
Confirm manually: journalctl -k -b | grep -iE 'mlx5_core.*high temperature'; ethtool -m LINK; mget_temp -d DEVICE
Side effects of the fix: None: it only reports.
Sources: https://github.com/torvalds/linux (drivers/net/ethernet/mellanox/mlx5/core/events.c) ;
https://github.com/NVIDIA/NVSentinel (health-monitors/syslog-health-monitor/pkg/nicdriver, port_module_high_temp)
"""

from __future__ import annotations

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import RECENT, UPTIME, by_device, of_devices


def observe(facts: FactsView) -> dict[str, str] | str:
    return by_device(of_devices(facts, "kernel_log.nics", RECENT), "hot") or ""


CHECK = Check(
    needs=("kernel_log.nics", UPTIME),
    observe=observe,
    log=RECENT,
    accept=Empty("no message about heat"),
    remedy=manual(
        "Compare the temperatures of all modules and the fan speeds with those of a good node. Clean filters, replace fans, "
        "and put a module into another port: if the heat moves with it, replace the module."
    ),
    severity="medium",
)
