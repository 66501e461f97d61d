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

from math import inf
from typing import Any

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.shared.kernel_events import UPTIME, ago


def observe(facts: FactsView) -> dict[str, str] | str:
    now, points = facts.readable(UPTIME), facts.readable("mounts.points")
    mounted = _Mounted(points or {})
    found = {}
    for event in facts["kernel_log.xfs_shutdowns"]:
        place = event["device"] if points is None else mounted.place(event["device"])
        if place:
            age = None if now is None else max(0.0, now - event["time"])
            found[place] = f"{event['text']}, {ago(age)}"
    return found or ""


class _Mounted:
    """Where the XFS file systems of a host are mounted."""

    def __init__(self, points: dict[str, Any]) -> None:
        self._paths: dict[str, str] = {}
        self._disks: set[str] = set()
        for path, seen in points.items():
            if seen["type"] == "xfs":
                self._disks.add(seen["disk"] or "")
                for name in (seen["disk"], seen["source"].rpartition("/")[2]):
                    self._paths.setdefault(name, path)
        self._lengths = {len(disk) for disk in self._disks}

    def place(self, device: str) -> str:
        """Return where a device is mounted, or its name if that is not certain; empty if no XFS of its disk is mounted."""
        is_there = any(device[:length] in self._disks for length in self._lengths)
        return self._paths.get(device, device) if is_there else ""


CHECK = Check(
    needs=("kernel_log.xfs_shutdowns", "mounts.points", UPTIME),
    observe=observe,
    log=inf,
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
