"""A file system is read-only after an error.

Why it matters: The kernel stops writing when it finds damage. Programs then fail at their first write, often long
after, with a message that names another cause. The check ignores mounts that are read-only on purpose. Some kernels do
not show this state of ext4 at all: see also file-system-errors-recorded.
Healthy exception: A file system may be mounted read-only on purpose.
Does not gate: The check covers all local file systems, and a job may use none of them.
Confirm manually: grep ' / ' /proc/self/mountinfo; dmesg | grep -iE 'remount|i/o error|ext4-fs error|xfs.*shutdown'
Side effects of the fix: The check of the file system needs it unmounted, for / a reboot; damaged files may be lost.
Sources: https://docs.kernel.org/admin-guide/ext4.html (errors=) ; https://man7.org/linux/man-pages/man8/fsck.8.html
"""

from typing import Any

from nodetune.api import Check, Equals, FactsView, repair
from nodetune.checks.storage._places import local

WRITABLE = "writable"
AFTER_ERROR = "read-only after an error"
STOPPED = {"emergency_ro": AFTER_ERROR, "abort": AFTER_ERROR, "shutdown": "shut down"}
"""Options that newer ext4 shows: since Linux 6.12 (and 6.1 to 6.6 as long-term kernels) it no longer sets the read-only flag itself."""


def observe(facts: FactsView) -> dict[str, str]:
    points = local(facts["mounts.points"])
    return {path: _state(mount) for path, mount in points.items() if "ro" not in mount["options"]}


def _state(mount: dict[str, Any]) -> str:
    """Return the state of the file system itself: the mount still shows the requested rw."""
    for option, text in STOPPED.items():
        if option in mount["super_options"]:
            return text
    return AFTER_ERROR if "ro" in mount["super_options"] else WRITABLE


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=Equals(WRITABLE),
    remedy=repair(
        "Drain the node, read dmesg and the disk's health, check the file system (fsck, xfs_repair) and replace a bad "
        "disk."
    ),
    severity="critical",
)
