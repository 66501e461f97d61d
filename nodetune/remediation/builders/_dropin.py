"""Drop-in files of systemd: units (UNIT.d) and systemd's own configuration (system.conf.d, logind.conf.d …)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.remediation.builders._own import Allowed, own_file, plain_line
from nodetune.remediation.host_view import HostView

SUFFIXES = (".service", ".slice", ".socket", ".scope", ".timer", ".mount", ".swap", ".target")

LIMITS = {"system.conf": ("Manager", "DefaultLimit")}
CPUS = {
    ("init.scope", "[Scope]", "AllowedCPUs"),
    ("system.slice", "[Slice]", "AllowedCPUs"),
    ("user.slice", "[Slice]", "AllowedCPUs"),
}
"""Unit, section and key of the CPUs of system tasks (system_cpus)."""

VALUE = r"[\w:., /-]*"


def path_of(unit: str) -> str:
    """Return the drop-in of a unit (…/ssh.service.d/…) or of a configuration file (…/logind.conf.d/…)."""
    folder = "system/" if unit.endswith(SUFFIXES) else ""
    return f"/etc/systemd/{folder}{unit}.d/zz-nodetune.conf"


def change(host: HostView, unit: str, sections: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the change that adds settings (section → key → text) to nodetune's drop-in of a unit."""
    return own_file(host, path_of(unit), "dropin.conf.j2", sections, _allowed(host, unit))


def _allowed(host: HostView, unit: str) -> Allowed:
    """Allow the limits of a unit or of all, and the keys that checks set for this one."""
    known = CPUS | {tuple(name.split(" ")) for name in host.targets("systemd_dropin")}

    def of_unit(keys: tuple[str, ...], value: Any) -> bool:
        if len(keys) != 2 or not plain_line(value, VALUE):
            return False
        section, key = LIMITS.get(unit, ("Service", "Limit"))
        limit = keys[0] == section and plain_line(keys[1], rf"{key}[A-Z]+")
        return limit or (unit, f"[{keys[0]}]", keys[1]) in known

    return of_unit


def handlers(units: Iterable[str]) -> list[dict[str, Any]]:
    """Return the handlers that make changed drop-ins effective, each once."""
    found = [handler for unit in units for handler in _handlers_of(unit)]
    return [handler for number, handler in enumerate(found) if handler not in found[:number]]


def _handlers_of(unit: str) -> list[dict[str, Any]]:
    """Return the handlers of one unit. Slices and scopes change when systemd reloads."""
    if unit in ("system.conf", "user.conf"):
        return [_run("daemon-reexec")]
    if unit.endswith(".conf"):
        return [_run(f"restart systemd-{unit.removesuffix('.conf')}.service")]
    restart = [_run(f"restart {unit}") | {"of": path_of(unit)}] if unit.endswith((".service", ".socket")) else []
    return [_run("daemon-reload"), *restart]


def _run(what: str) -> dict[str, Any]:
    return {"change": "run", "run": what}
