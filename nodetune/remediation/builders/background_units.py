"""Units that work in the background, as the site file decides: disabled, masked, or (timers) all hosts at one time.

A time is one of systemd's calendar events such as `Sun 06:00`: a drop-in sets it, and takes the random delay away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import _dropin
from nodetune.remediation.builders._own import named, own_file, plain_line
from nodetune.remediation.host_view import HostView, UnfixableError

OFF = ("disabled", "masked")
CALENDAR = r"[\w*][\w *:.,/~-]{0,99}"


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    return [change | {"checks": host.checks(fix)} for fix in fixes for change in _of(fix, host)]


def _of(fix: Fix, host: HostView) -> list[dict[str, Any]]:
    units = [named(unit, "unit", r"[\w.@-]+") for unit in fix.subjects]
    if fix.value in OFF:
        return [
            {
                "change": "unit",
                "unit": unit if unit.endswith(_dropin.SUFFIXES) else f"{unit}.service",
                "enabled": fix.value,
                "active": "stopped",
            }
            for unit in units
        ]
    if not all(unit.endswith(".timer") for unit in units):
        raise UnfixableError(f"a service is set to {' or '.join(OFF)}, not to {fix.value!r}: fix the site file")
    when = named(str(fix.value), "time (OnCalendar=)", CALENDAR)
    files = [own_file(host, _dropin.path_of(unit), "timer.conf.j2", {"OnCalendar": when}, _calendar) for unit in units]
    return [*files, *_dropin.handlers(units), *(_restart(unit) for unit in units)]


def _calendar(keys: tuple[str, ...], value: Any) -> bool:
    return keys == ("OnCalendar",) and plain_line(value, CALENDAR)


def _restart(unit: str) -> dict[str, Any]:
    return {"change": "run", "run": f"restart {unit}", "of": _dropin.path_of(unit)}
