"""All that is known about names and values: data/nccl_env.yml, whose head explains its fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

About = Mapping[str, Any]
"""What is known of one variable."""

FILE = Path(__file__).parents[1] / "data" / "nccl_env.yml"


@cache
def table() -> dict[str, Any]:
    """The whole file, read once."""
    import yaml  # here, because checks import this module: reading costs time only when something is judged

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(FILE.read_text("utf-8"), Loader=loader)  # noqa: S506  (safe, and in C if it can be)
    return loaded


@cache
def variables() -> dict[str, dict[str, Any]]:
    """Name → what is known of it, with its component."""
    return {
        name: {**about, "component": component}
        for component, names in table()["variables"].items()
        for name, about in names.items()
    }
