"""Reading from a data file system writes access times each time.

Why it matters: With strict access times every read of every file costs a write. relatime, the kernel's default, writes at
most once a day and file; noatime never does.
Confirm by hand: findmnt -o TARGET,OPTIONS
Side effects of the fix: Programs that purge scratch by access time no longer see reads (noatime).
Sources: https://man7.org/linux/man-pages/man8/mount.8.html ; https://docs.kernel.org/filesystems/ext4/index.html
"""

from typing import Any

from nodetune.checks.storage._places import data
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import mount_option
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    return {place: _policy(seen) for place, seen in data(facts["mounts.points"]).items()}


def _policy(seen: dict[str, Any]) -> str:
    """Strict access times show as no option at all."""
    return next((option for option in ("noatime", "relatime") if option in seen["options"]), "strictatime")


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=OneOf(["noatime", "relatime"]),
    set="noatime",
    remedy=mount_option("noatime"),
    severity="low",
)
