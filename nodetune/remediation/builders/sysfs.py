"""Files under /sys: written now, kept by tmpfiles.d."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import _tuned
from nodetune.remediation.builders._own import among, named, own_file, text_of
from nodetune.remediation.builders.sysctl import set_later
from nodetune.remediation.host_view import HostView

PATH = "/etc/tmpfiles.d/00-nodetune.conf"
"""Of lines for one path the one in the file that sorts first counts."""

NEEDS = _tuned.NEEDS


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made = []
    settings = {}
    against = []
    for fix in fixes:
        path, value = named(fix.target, "path under /sys", r"/sys/[\w.:@/+-]+"), text_of(fix.value)
        settings[path] = value
        made.append({"change": "value", "path": path, "value": value, "checks": host.checks(fix)})
        against.append((_tuned.of_sysfs(_tuned.active(host), path, value), host.checks(fix)))
        found = host.readable(f"persisted.tmpfiles.{path}") or {}
        file = str(found.get("file", ""))
        if file and PurePosixPath(file).parent.name != "tmpfiles.d":
            if text_of(found["value"]) != value:
                host.note(set_later(found, path))
        elif file and PurePosixPath(file).name < PurePosixPath(PATH).name:
            host.note(f"{file} line {found['line']} sets {path} before {PATH} and wins at boot: remove that line.")
    change = own_file(host, PATH, "tmpfiles.conf.j2", settings, among(host.targets("sysfs")))
    return [*made, change, *_tuned.changes(host, against)]
