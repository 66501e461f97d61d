"""The read-ahead of NFS mounts: written now, kept by a udev rule that looks where the kernel's new device is mounted.

nfs-utils has a rule of its own (99-nfs.rules, nfsrahead), which knows types of mounts only: ours is read after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named, own_file, plain_line, text_of
from nodetune.remediation.host_view import HostView

PATH = "/etc/udev/rules.d/99-zz-nodetune-nfs.rules"
PLACE, VALUE = r"/[\w./@:+-]+", r"\d{1,9}"
"""Signs that neither udev nor the shell reads as more than text."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    settings: dict[str, str] = {}
    for fix in fixes:
        value = named(text_of(fix.value), "read-ahead in KiB", VALUE)
        for place in fix.subjects:
            settings[named(place, "mount point", PLACE)] = value
            made.append({"change": "read_ahead", "mount_point": place, "kib": int(value), "checks": host.checks(fix)})
    file = own_file(host, PATH, "nfs.rules.j2", settings, _allowed)
    return [*made, file, {"change": "run", "run": "udev-reload"}]


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    return len(keys) == 1 and plain_line(keys[0], PLACE) and plain_line(value, VALUE)
