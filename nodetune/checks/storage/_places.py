"""Select mounts that hold data for jobs, as opposed to those of the system."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

Points = dict[str, dict[str, Any]]

SYSTEM = re.compile(
    r"/($|(bin|boot|dev|etc|home|lib\w*|nix|opt|proc|root|run|sbin|snap|srv|sys|sysroot|tmp|usr|var)(/|$))"
)
SMALL_FILES = ("home", "root", "usr", "opt")
DISK_FILE_SYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs")


def local(points: Points) -> Points:
    """Return the mounts of file systems on a disk of this host."""
    return {path: mount for path, mount in points.items() if mount["type"] in DISK_FILE_SYSTEMS}


def data(points: Points) -> Points:
    """Return the local mounts outside system directories, such as /data and /scratch."""
    return {path: mount for path, mount in local(points).items() if not SYSTEM.match(path)}


def streams(place: str) -> bool:
    """Return whether a network mount may hold large files: homes and programs are small ones."""
    return not set(PurePosixPath(place).parts[1:2]) & set(SMALL_FILES)
