"""A loaded kernel module differs from the installed one.

Why it matters: The module was replaced on disk, but the old one is still loaded. The next load, at an unplanned moment
such as a reboot, a reset or a crash, brings a version that jobs were not tested with. Until then, libraries and tools
that were updated with the module may not match the loaded one.
Confirm manually: cat /sys/module/nvidia/version; modinfo -F version nvidia
Side effects of the fix: Reloading a module ends everything that uses it. It needs an idle node or a reboot.
Sources: https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-module ;
https://man7.org/linux/man-pages/man8/modinfo.8.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual


def replaced(facts: FactsView) -> Any:
    found: dict[str, dict[str, str]] = facts["modules.versions"]
    return {
        name: f"{each['loaded']} is loaded, {each['installed']} is installed"
        if each["loaded"] != each["installed"]
        else ""
        for name, each in found.items()
    } or []


CHECK = Check(
    observe=replaced,
    needs=("modules.versions",),
    accept=Empty("the installed module is loaded"),
    remedy=manual("Drain the node and reboot, or reload the module when nothing uses it."),
    severity="medium",
)
