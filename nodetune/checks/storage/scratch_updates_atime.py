"""A data file system is mounted with strictatime.

Why it matters: With strict access times, every read of every file costs a write. relatime, the kernel's default,
writes at most once per day and file; noatime never does.
Confirm manually: findmnt -o TARGET,OPTIONS
Side effects of the fix: Programs that purge scratch by access time no longer see reads (noatime).
Sources: https://man7.org/linux/man-pages/man8/mount.8.html ; https://docs.kernel.org/filesystems/ext4/index.html
"""

from typing import Any

from nodetune.api import Check, FactsView, OneOf, mount_option
from nodetune.checks.storage._places import written


def observe(facts: FactsView) -> dict[str, str]:
    return {path: _policy(mount) for path, mount in written(facts["mounts.points"]).items()}


def _policy(mount: dict[str, Any]) -> str:
    """Return the access time option; strict access times show no option."""
    return next((option for option in ("noatime", "relatime") if option in mount["options"]), "strictatime")


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=OneOf(["noatime", "relatime"]),
    set="noatime",
    remedy=mount_option("noatime"),
    severity="low",
)
