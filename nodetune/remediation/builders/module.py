"""Kernel modules: loaded now, and at boot by modules-load.d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import HostView
from nodetune.remediation.builders._own import among, named, own_file


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for fix in fixes:
        name = named(fix.target, "module", r"[\w-]+")
        path = f"/etc/modules-load.d/nodetune-{name}.conf"
        change = own_file(host, path, "modules-load.conf.j2", {name: "loaded"}, among([name], "loaded"))
        made.append({"change": "module", "name": name, "loaded": True, "checks": host.checks(fix)})
        made.append(change | {"checks": host.checks(fix)})
    return made
