"""Drop-in files of systemd: units (UNIT.d) and systemd's own configuration (system.conf.d, logind.conf.d …)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodetune.fixes import Host
from nodetune.fixes._own import own_file

SUFFIXES = (".service", ".slice", ".socket", ".scope", ".timer", ".mount", ".swap", ".target")


def path_of(unit: str) -> str:
    """ssh.service → /etc/systemd/system/ssh.service.d/…, logind.conf → /etc/systemd/logind.conf.d/…"""
    folder = "system/" if unit.endswith(SUFFIXES) else ""
    return f"/etc/systemd/{folder}{unit}.d/zz-nodetune.conf"


def change(host: Host, unit: str, sections: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The change that adds settings (section → key → text) to nodetune's drop-in of a unit."""
    return own_file(host, path_of(unit), "dropin.conf.j2", sections)


def hooks(unit: str, *, running: bool = True) -> list[dict[str, Any]]:
    """What brings a changed drop-in into force. Slices and scopes take theirs when systemd reloads."""
    if unit in ("system.conf", "user.conf"):
        return [_run("daemon-reexec")]
    if unit.endswith(".conf"):
        return [_run(f"restart systemd-{unit.removesuffix('.conf')}.service")]
    restart = [_run(f"restart {unit}")] if running and unit.endswith((".service", ".socket")) else []
    return [_run("daemon-reload"), *restart]


def _run(what: str) -> dict[str, Any]:
    return {"change": "run", "run": what}
