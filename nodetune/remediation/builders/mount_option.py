"""Options of mounted file systems: remounted now, persisted in fstab. The host removes contradicting options there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named
from nodetune.remediation.host_view import HostView


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for fix in fixes:
        option = named(str(fix.value), "mount option", r"[\w=.:-]+")
        for place in fix.subjects:
            given = {"mount_point": place, "option": option}
            checks = host.checks(fix)
            made.append(
                {"change": "edit", "path": "/etc/fstab", "how": "fstab_option", "with": given, "checks": checks}
            )
            made.append({"change": "mount", "mount_point": place, "option": option, "checks": checks})
    return made
