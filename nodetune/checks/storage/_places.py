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


def written(points: Points) -> Points:
    """Return those of `data` that may be written to: snapshots and images are mounted read-only."""
    return {path: mount for path, mount in data(points).items() if "ro" not in mount["options"]}


def streams(place: str) -> bool:
    """Return whether a network mount may hold large files: homes and programs, as on the root of a host, are small ones."""
    return place != "/" and not set(PurePosixPath(place).parts[1:2]) & set(SMALL_FILES)
