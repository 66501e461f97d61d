"""What sets again at boot what the kernel and drivers forget: a unit of nodetune's, and the code that it runs.

The code is the very text of the lens that makes the change now (playbooks/module_utils/nodetune_host), so that now and
at boot are one. Each unit has a folder of its own: taking one kind of fix back leaves the others whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from nodetune import paths
from nodetune.fixes import Host
from nodetune.fixes._own import own_file, render

FOLDER = "/usr/local/lib/nodetune"
PACKAGE = "nodetune_host"
BESIDE = ("__init__", "problem")
"""Files that every lens needs."""


def unit(name: str) -> str:
    return f"nodetune-{name}.service"


def folder(name: str) -> str:
    """Where the code of one unit is, and the package in it."""
    return f"{FOLDER}/{name}"


def changes(
    name: str, modules: Sequence[str], more: Mapping[str, str] | None = None, *, started: bool = False
) -> list[dict[str, Any]]:
    """The changes that install and enable nodetune-NAME.service (templates/NAME.service.j2) with these lens files.

    `more` is source beside the package: file name → text. `started`: it runs from now on, newer code from the change on.
    """
    sources = {f"{PACKAGE}/{module}.py": _source(module) for module in (*BESIDE, *modules)} | dict(more or {})
    return [
        *(_file(f"{folder(name)}/{path}", text) for path, text in sources.items()),
        _file(f"/etc/systemd/system/{unit(name)}", render(f"{name}.service.j2", {}, folder=folder(name))),
        {"change": "unit", "unit": unit(name), "enabled": "enabled", "active": "started" if started else None},
        *([{"change": "run", "run": f"restart {unit(name)}"}] if started else []),
    ]


def settings_file(name: str) -> str:
    return f"/etc/nodetune/{name}.conf"


def settings(host: Host, name: str, new: Mapping[str, Any]) -> dict[str, Any]:
    """The change that adds to what nodetune-NAME.service sets at boot."""
    return own_file(host, settings_file(name), f"{name}.conf.j2", new)


def _file(path: str, text: str, mode: str = "0644") -> dict[str, Any]:
    return {"change": "file", "path": path, "content": text, "mode": mode}


@cache
def _source(module: str) -> str:
    return (paths.shared("playbooks") / "module_utils" / PACKAGE / f"{module}.py").read_text("utf-8")
