"""From the fields of requests to options: an option takes its default and its range from the field of the same name."""

from __future__ import annotations

from dataclasses import MISSING
from typing import Any

import click

from nodetune.foundation.request import limits


def of(kind: type[Any], name: str) -> dict[str, Any]:
    """Return what an option takes from a field: its name, default, and range or choices."""
    found = limits(kind, name)
    default = None if found["default"] is MISSING else found["default"]
    taken: dict[str, Any] = {"default": default, "show_default": default not in (None, "")}
    if isinstance(default, bool):
        return {"is_flag": True, "default": default}
    if "choices" in found:
        return {**taken, "type": click.Choice(found["choices"])}
    if "least" in found:
        return {
            **taken,
            "type": (click.IntRange if found["whole"] else click.FloatRange)(found["least"], found["most"]),
        }
    return taken
