"""A kernel module was replaced on disk and the old one still runs.

Why it matters: The next load brings another version than the one that jobs were tested with, and it comes at a moment
that nobody chose: a reboot, a reset, a crash. Until then libraries and tools that were updated with the module may
not fit the running one.
Confirm by hand: cat /sys/module/nvidia/version; modinfo -F version nvidia
Side effects of the fix: Loading a module anew ends everything that uses it: idle node, or reboot.
Sources: https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-module ;
https://man7.org/linux/man-pages/man8/modinfo.8.html
"""

from __future__ import annotations

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def replaced(facts: View) -> Any:
    found: dict[str, dict[str, str]] = facts["modules.versions"]
    return {
        name: f"{each['loaded']} runs, {each['installed']} is installed" if each["loaded"] != each["installed"] else ""
        for name, each in found.items()
    } or []


CHECK = Check(
    observe=replaced,
    needs=("modules.versions",),
    accept=Empty("the installed module runs"),
    remedy=manual("Drain the node and reboot (or unload and load the module when nothing uses it)"),
    severity="medium",
)
