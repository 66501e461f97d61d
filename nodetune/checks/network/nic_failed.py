"""The driver of a network card says that the card failed.

Why it matters: The firmware does not answer, commands time out, or the card reports an error that it cannot repair. Jobs
on this link hang until they time out, while the link can look up and the node ready. The check counts the whole boot: a
card that failed stays so until its driver says that it recovered or starts it again.
Healthy exception: A reset of the card (mlxfwreset, devlink) makes the same messages, and the driver then reports that it
recovered. A virtual function logs that its card is disabled (Fatal error 3) when it is removed. A card that has left the bus since is not judged here: an administrator removed it, or pcie-device-lost reports it.
Confirm manually: journalctl -k -b | grep -E 'mlx5_core|efa|infiniband'
Side effects of the fix: The link is down while its card is reset; a card that fails again needs a replacement.
Sources: https://github.com/NVIDIA/NVSentinel (health-monitors/syslog-health-monitor/pkg/nicdriver: the fatal patterns) ;
https://github.com/torvalds/linux (drivers/net/ethernet/mellanox/mlx5/core/health.c and cmd.c,
drivers/infiniband/hw/efa/efa_com.c)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import UPTIME, by_device, of_devices


def observe(facts: FactsView) -> dict[str, str] | str:
    on_bus = facts.readable("pci.devices")
    events = [event for event in of_devices(facts, "kernel_log.nics") if not _removed_function(event, on_bus)]
    failed = by_device(events, "failed")
    return {name: text for name, text in failed.items() if on_bus is None or ":" not in name or name in on_bus} or ""


def _removed_function(event: Mapping[str, Any], on_bus: Mapping[str, Any] | None) -> bool:
    """Return whether a virtual function only logs its own removal; without a list of devices, its address shows that it is one."""
    if not event["text"].startswith("Fatal error 3 "):
        return False
    if on_bus is None:
        return not event["device"].endswith((":00.0", ":00.1"))
    return bool(on_bus.get(event["device"], {}).get("virtual_function"))


CHECK = Check(
    needs=("kernel_log.nics", "pci.devices", UPTIME),
    observe=observe,
    log=inf,
    accept=Empty("no failed card"),
    remedy=manual(
        "Drain the node. mlx5: devlink health show pci/ADDRESS, then devlink dev reload pci/ADDRESS action fw_activate, or "
        "power the host off and on; if it comes back, update the firmware or replace the card. EFA: the admin queue stays "
        "closed, so stop and start the instance."
    ),
    severity="high",
)
