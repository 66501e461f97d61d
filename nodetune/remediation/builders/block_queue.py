"""Attributes of disks' queues: written now, kept by a udev rule.

Disk names may change at each boot, so a rule is for all disks that are named alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from nodetune.api.model import Fix
from nodetune.foundation import text
from nodetune.remediation.builders._own import among_pairs, named, own_file, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

PATH = "/etc/udev/rules.d/99-zz-nodetune-block.rules"
PATTERNS = (
    (r"nvme\d+n\d+", "nvme*n*"),
    (r"(sd|vd|xvd|hd)[a-z]+", r"\1*"),
    (r"(md|dm-|zram|rbd|nbd|mmcblk|loop|pmem)\d+", r"\1*"),
)

ALIKE = r"nvme\*n\*|(sd|vd|xvd|hd|md|dm-|zram|rbd|nbd|mmcblk|loop|pmem)\*"
"""Device patterns made by `pattern`."""

VALUE = r"[\w.,-]+"
RULES = {"scheduler": "block.scheduler_rule", "read_ahead_kb": "block.read_ahead_rule"}
"""Attribute → the fact with the udev rule that sets it at each boot."""

NEEDS = tuple(RULES.values())


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    settings: dict[str, dict[str, str]] = {}
    for fix in fixes:
        attribute, value = named(fix.target, "attribute", r"\w+"), text_of(fix.value)
        named(value, "value of a queue", VALUE)
        for disk in _kept(attribute, value, fix.subjects, host):
            settings.setdefault(attribute, {})[pattern(disk)] = value
            path = f"/sys/block/{named(disk, 'disk')}/queue/{attribute}"
            made.append({"change": "value", "path": path, "value": value, "checks": host.checks(fix)})
        alike = ", ".join(sorted({pattern(disk) for disk in fix.subjects}))
        host.note(f"{attribute} = {value} applies from the next boot on to all disks named {alike}: {PATH}.")
    file = own_file(host, PATH, "block.rules.j2", settings, among_pairs(host.targets("block_queue"), ALIKE, VALUE))
    return [*made, file, {"change": "run", "run": "udev-reload"}]


def _kept(attribute: str, value: str, disks: Sequence[str], host: HostView) -> list[str]:
    """Return the disks that keep the value at the next boot; a note on those that do not. Raise UnfixableError if none does."""
    rules = (host.readable(RULES[attribute]) if attribute in RULES else None) or {}
    later: dict[str, str] = {}
    for disk, rule in rules.items():
        if (
            disk in disks
            and str(rule["value"]) != value
            and PurePosixPath(rule["file"]).name > PurePosixPath(PATH).name
        ):
            later[disk] = f"{rule['file']} line {rule['line']}"
    if later:
        told = f"{text.folded(later)} sets {attribute} and is read after {PATH}: it wins at the next boot. Remove that line"
        if set(later) >= set(disks):
            raise UnfixableError(f"{told}, then plan again")
        host.note(f"{told}.")
    return [disk for disk in disks if disk not in later]


def pattern(disk: str) -> str:
    """Return udev's pattern for disks that are named like this one: nvme0n1 → nvme*n*."""
    for shape, alike in PATTERNS:
        found = re.fullmatch(shape, disk)
        if found:
            return found.expand(alike)
    raise UnfixableError(f"{disk} is a type of disk without a known udev rule")
