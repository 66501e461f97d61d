"""Single settings of units, or of systemd's own configuration, in drop-in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import _dropin
from nodetune.remediation.builders._own import named, text_of
from nodetune.remediation.host_view import HostView


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    units: dict[str, dict[str, dict[str, str]]] = {}
    for fix in fixes:
        unit = named(str(fix.params["unit"]), "unit", r"[\w.:@\\-]+\.[a-z]+")
        section, key = (named(str(fix.params[each]), each, r"\w+") for each in ("section", "key"))
        units.setdefault(unit, {}).setdefault(section, {})[key] = text_of(fix.value)
    files = [_dropin.change(host, unit, sections) for unit, sections in units.items()]
    return [*files, *_dropin.handlers(units)]
