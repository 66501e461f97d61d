"""An XFS file system has shut down after an error.

Why it matters: XFS stops when it cannot write its log or finds damage. Every program that reads or writes there then fails
with an input/output error, and the mount options still show a file system that may be written to. The check reads the
kernel log of this boot.
Healthy exception: A file system that is no longer mounted, or that was mounted again, has left that state.
Confirm manually: journalctl -k -b | grep -E 'XFS .*(Shutting down|Mounting|Unmounting)'
Side effects of the fix: The repair needs the file system unmounted, for / a reboot; damaged files may be lost.
Sources: https://docs.kernel.org/admin-guide/xfs.html#error-handling ;
https://github.com/torvalds/linux/blob/master/fs/xfs/xfs_fsops.c (xfs_do_force_shutdown)
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.shared.kernel_events import UPTIME, ago


def observe(facts: FactsView) -> dict[str, str] | str:
    now, points = facts.readable(UPTIME), facts.readable("mounts.points")
    found = {}
    for event in facts["kernel_log.xfs_shutdowns"]:
        place = event["device"] if points is None else _place(event["device"], points)
        if place:
            age = None if now is None else max(0.0, now - event["time"])
            found[place] = f"{event['text']}, {ago(age)}"
    return found or ""


def _place(device: str, points: dict[str, Any]) -> str:
    """Return where a device is mounted, or its name if that is not certain; empty if no XFS of its disk is mounted."""
    places = [path for path, seen in points.items() if seen["type"] == "xfs" and device.startswith(seen["disk"] or "")]
    exact = [path for path in places if device in (points[path]["disk"], points[path]["source"].rpartition("/")[2])]
    return exact[0] if exact else device if places else ""


CHECK = Check(
    needs=("kernel_log.xfs_shutdowns", "mounts.points", UPTIME),
    observe=observe,
    accept=Empty("no shutdown"),
    remedy=repair(
        "Drain the node, and read dmesg and the disk's health (smartctl -a, nvme smart-log). Unmount the file system, mount "
        "it once so that its log is replayed, unmount it, and run xfs_repair -n. Replace a bad disk."
    ),
    severity="high",
    cost="hardware",
    part_of=("nvme-controller-not-live", "pci-device-not-answering"),
    name="XFS",
)
