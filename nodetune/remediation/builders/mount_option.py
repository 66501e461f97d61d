"""Options of mounted file systems: remounted now, kept in fstab or a map of the automounter, whose contradicting options go.

A remount of NFS changes the options of all file systems, such as async, and hardly one of its own: nfs(5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named
from nodetune.remediation.builders.nfs_option import AUTOFS, edit_of
from nodetune.remediation.expected_state import RIVALS
from nodetune.remediation.host_view import HostView

FSTAB = {"file": "/etc/fstab", "key": None}
NEEDS = ("mounts.configured",)


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    configured, maps = host.readable("mounts.configured") or {}, False
    for fix in fixes:
        option = named(str(fix.value), "mount option", r"[\w=.:-]+")
        for place in fix.subjects:
            known, checks = configured.get(place, FSTAB), host.checks(fix)
            edit = edit_of(place, known, option, RIVALS.get(option, []) if known["key"] else [])
            maps |= edit["how"] == "automount_option"
            made.append({**edit, "checks": checks})
            made.append({"change": "mount", "mount_point": place, "option": option, "checks": checks})
    return [*made, *([{"change": "run", "run": AUTOFS}] if maps else [])]
