"""Services on, off or masked, now and at boot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._dropin import SUFFIXES
from nodetune.remediation.builders._own import named
from nodetune.remediation.host_view import HostView, UnfixableError

STATES = {"enabled": "started", "disabled": "stopped", "masked": "stopped"}
ENABLE_HAS_NO_EFFECT = ("static", "indirect", "generated", "alias", "transient", "enabled-runtime")
"""Unit files that something else starts: there is nothing to enable."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    return [_change(fix, unit, host) for fix in fixes for unit in fix.subjects or (fix.target,)]


def _change(fix: Fix, target: str, host: HostView) -> dict[str, Any]:
    short = named(target, "unit", r"[\w.:@\\-]+").removesuffix(".service")
    unit = short if short.endswith(SUFFIXES) else f"{short}.service"
    if fix.value not in STATES:
        raise UnfixableError(f"a service is set to {', '.join(STATES)}, not to {fix.value!r}")
    known = {} if fix.value == "masked" else host.get(f"services.{short}") or {}
    if not known and fix.value == "enabled":
        raise UnfixableError(f"{unit} is not installed: install the package that contains it, then plan again")
    if known.get("enabled") == "masked" and fix.value == "enabled":
        host.note(f"{unit} is masked, so someone did not want it: it will be unmasked, and systemd reloaded.")
    nothing_to_enable = known.get("enabled") in ENABLE_HAS_NO_EFFECT
    return {
        "change": "unit",
        "unit": unit,
        "enabled": None if nothing_to_enable else fix.value,
        "active": STATES[fix.value],
        "checks": host.checks(fix),
    }
