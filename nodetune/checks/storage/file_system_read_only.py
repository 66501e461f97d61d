"""A file system has turned read-only after an error.

Why it matters: The kernel stops writing when it finds damage. Programs then fail at their first write, often long after, and
with a message that names another cause. Mounts that were made read-only on purpose are not judged. Some kernels do not show
this state of ext4 at all: see also the errors that it records.
Confirm by hand: grep ' / ' /proc/self/mountinfo; dmesg | grep -iE 'remount|i/o error|ext4-fs error|xfs.*shutdown'
Side effects of the fix: The check of the file system needs it unmounted, for / a reboot; damaged files may be lost.
Sources: https://docs.kernel.org/admin-guide/ext4.html (errors=) ; https://man7.org/linux/man-pages/man8/fsck.8.html
"""

from typing import Any

from nodetune.checks.storage._places import local
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

WRITABLE = "writable"
AFTER_ERROR = "read-only after an error"
STOPPED = {"emergency_ro": AFTER_ERROR, "abort": AFTER_ERROR, "shutdown": "shut down"}
"""What newer ext4 shows: since Linux 6.12 (and 6.1 to 6.6 as long-term kernels) it no longer sets the read-only flag itself."""


def observe(facts: View) -> dict[str, str]:
    points = local(facts["mounts.points"])
    return {place: _state(seen) for place, seen in points.items() if "ro" not in seen["options"]}


def _state(seen: dict[str, Any]) -> str:
    """The mount still says rw, as someone asked for it, but the file system below says otherwise."""
    for option, text in STOPPED.items():
        if option in seen["super_options"]:
            return text
    return AFTER_ERROR if "ro" in seen["super_options"] else WRITABLE


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=Equals(WRITABLE),
    remedy=manual(
        "Drain the node, read dmesg and the disk's health, check the file system (fsck, xfs_repair) and replace a bad disk."
    ),
    severity="critical",
)
