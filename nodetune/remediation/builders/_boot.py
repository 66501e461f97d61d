"""Set values at boot that the kernel and drivers forget: nodetune's unit and its code.

The code is the very module that makes the change now (playbooks/module_utils/nodetune_host), so that now and
at boot are one. Each unit has a folder of its own, so the rollback of one kind of fix does not affect the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from nodetune.foundation import paths
from nodetune.remediation.builders._own import Allowed, own_file, render, whole_file
from nodetune.remediation.host_view import HostView

NEEDS = ("own.programs",)
FOLDER = "/usr/local/lib/nodetune"
PACKAGE = "nodetune_host"
COMMON = ("__init__", "problem", "resources/__init__")
"""Files that every module needs."""

CPU_LIST = ("onhost/__init__", "onhost/cpu_list")


def unit(name: str) -> str:
    return f"nodetune-{name}.service"


def folder(name: str) -> str:
    """Return where the code of one unit is, and the package in it."""
    return f"{FOLDER}/{name}"


def changes(
    name: str,
    modules: Sequence[str],
    more: Mapping[str, str] | None = None,
    *,
    started: bool = False,
    late: bool = False,
) -> list[dict[str, Any]]:
    """Return the changes that install and enable nodetune-NAME.service (templates/NAME.service.j2) with these modules.

    `more` is further source: file name → text. `started`: the unit runs from now on, and restarts for newer code.
    `late`: it needs a driver that may come after it, so udev starts it with the driver (templates/NAME.rules.j2).
    """
    sources = {f"{PACKAGE}/{module}.py": _source(module) for module in (*COMMON, *modules)} | dict(more or {})
    return [
        *(whole_file(f"{folder(name)}/{path}", text) for path, text in sources.items()),
        whole_file(f"/etc/systemd/system/{unit(name)}", render(f"{name}.service.j2", {}, {"folder": folder(name)})),
        *([whole_file(rules(name), render(f"{name}.rules.j2", {}))] if late else []),
        {"change": "unit", "unit": unit(name), "enabled": "enabled", "active": "started" if started else None},
        *([{"change": "run", "run": f"restart {unit(name)}"}] if started else []),
    ]


def rules(name: str) -> str:
    """Return the path of a unit's udev rule. udev reads changed rules on its own."""
    return f"/etc/udev/rules.d/99-zz-nodetune-{name}.rules"


def settings_file(name: str) -> str:
    return f"/etc/nodetune/{name}.conf"


def settings(host: HostView, name: str, new: Mapping[str, Any], allowed: Allowed) -> dict[str, Any]:
    """Return the change that adds to what nodetune-NAME.service sets at boot."""
    return own_file(host, settings_file(name), f"{name}.conf.j2", new, allowed)


@cache
def _source(module: str) -> str:
    return (paths.shared("playbooks") / "module_utils" / PACKAGE / f"{module}.py").read_text("utf-8")
