"""Parameters of Lustre clients: written now, and by nodetune-lustre.service at boot and after each mount of Lustre.

`lctl set_param -P` would keep them for all clients, and works on the management server only. The unit holds for this
host alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.foundation.json_document import merge
from nodetune.remediation.builders._own import Allowed, kept, named, plain_line, render, text_of
from nodetune.remediation.builders.swap_off import unit_name
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = ("lustre.llite", "lustre.osc", "mounts.points")

PATH = "/etc/nodetune/lustre.conf"
UNIT = "nodetune-lustre.service"
FOLDER = "/sys/fs/lustre"
KINDS = ("llite", "osc")
VALUE = r"\d{1,12}"
SYSTEM = r"[\w.]+"


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    settings: dict[str, dict[str, str]] = {}
    for fix in fixes:
        value = named(text_of(fix.value), "value of a parameter", VALUE)
        for system in fix.subjects:
            _require_sysfs(fix.target, system, host)
            settings.setdefault(fix.target, {})[system] = value
            made.append(
                {"change": "value", "path": _path(fix.target, system), "value": value, "checks": host.checks(fix)}
            )
    merged = merge(kept(host, PATH, _allowed(host)), settings)
    lines = {_path(target, system): value for target, of in merged.items() for system, value in of.items()}
    return [_file(PATH, render("lustre.conf.j2", merged, {"lines": lines})), _unit(host), _enabled(), *made]


def _require_sysfs(target: str, system: str, host: HostView) -> None:
    """Raise UnfixableError for what nodetune does not set, or what this release of Lustre keeps elsewhere."""
    kind = target.partition(".")[0]
    if kind not in KINDS:
        raise UnfixableError(
            f"{target} is not a parameter that nodetune can set: it sets those of {' and '.join(KINDS)}"
        )
    if (host[f"lustre.{kind}"].get(system) or {}).get("folder") != FOLDER:
        raise UnfixableError(f"{system} has {target} outside {FOLDER}: lctl set_param {target}, after each mount")


def _path(target: str, system: str) -> str:
    """Return the pattern of the files that hold a parameter of one file system."""
    kind, _, name = target.partition(".")
    devices = named(system, "Lustre file system", SYSTEM) + ("-OST*" if kind == "osc" else "-*")
    return f"{FOLDER}/{kind}/{devices}/{named(name, 'parameter')}"


def _allowed(host: HostView) -> Allowed:
    """Allow the parameters that checks set, for any file system."""
    known = host.targets("lustre_param")

    def of_lustre(keys: tuple[str, ...], value: Any) -> bool:
        return len(keys) == 2 and keys[0] in known and plain_line(keys[1], SYSTEM) and plain_line(value, VALUE)

    return of_lustre


def _unit(host: HostView) -> dict[str, Any]:
    """Return the unit, wanted by the mounts that there are: what fstab mounts late or on demand has its settings, too."""
    points = host.get("mounts.points") or {}
    mounts = sorted(f"{unit_name(place)}.mount" for place, point in points.items() if point["type"] == "lustre")
    return _file(f"/etc/systemd/system/{UNIT}", render("lustre.service.j2", {}, {"path": PATH, "mounts": mounts}))


def _enabled() -> dict[str, Any]:
    return {"change": "unit", "unit": UNIT, "enabled": "enabled", "active": None}


def _file(path: str, text: str) -> dict[str, Any]:
    return {"change": "file", "path": path, "content": text, "mode": "0644"}
