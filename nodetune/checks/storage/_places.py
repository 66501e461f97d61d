"""Which mounts hold data for jobs, as opposed to the system's own."""

from __future__ import annotations

import re
from typing import Any

Points = dict[str, dict[str, Any]]

SYSTEM = re.compile(
    r"/($|(bin|boot|dev|etc|home|lib\w*|nix|opt|proc|root|run|sbin|snap|srv|sys|sysroot|tmp|usr|var)(/|$))"
)
DISK_FILE_SYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs")


def local(points: Points) -> Points:
    """Mounts of file systems that live on a disk of this host."""
    return {place: seen for place, seen in points.items() if seen["type"] in DISK_FILE_SYSTEMS}


def data(points: Points) -> Points:
    """The local mounts outside the system's own folders: /data, /scratch, /mnt/nvme …"""
    return {place: seen for place, seen in local(points).items() if not SYSTEM.match(place)}
