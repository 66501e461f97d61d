"""Parameters of Lustre clients: written now, and by nodetune-lustre.service at boot and after each mount of Lustre.

`lctl set_param -P` would keep them for all clients, and works on the management server only. The unit holds for this
host alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.foundation.json_document import merge
from nodetune.remediation.builders._own import (
    among_pairs,
    kept,
    named,
    render,
    text_of,
    whole_file,
)
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
    merged = merge(kept(host, PATH, among_pairs(host.targets("lustre_param"), SYSTEM, VALUE)), settings)
    lines = {_path(target, system): value for target, of in merged.items() for system, value in of.items()}
    file = whole_file(PATH, render("lustre.conf.j2", merged, {"lines": lines}))
    return [file, _unit(host), {"change": "unit", "unit": UNIT, "enabled": "enabled", "active": None}, *made]


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


def _unit(host: HostView) -> dict[str, Any]:
    """Return the unit, wanted by the mounts that there are: what fstab mounts late or on demand has its settings, too."""
    points = host.get("mounts.points") or {}
    mounts = sorted(f"{unit_name(place)}.mount" for place, point in points.items() if point["type"] == "lustre")
    return whole_file(f"/etc/systemd/system/{UNIT}", render("lustre.service.j2", {}, {"path": PATH, "mounts": mounts}))
