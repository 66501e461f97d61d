"""The table of names and values, data/nccl_env.yml, whose header explains its fields; and the order of NCCL's releases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from nodetune import data

About = Mapping[str, Any]
"""The table entry of one variable."""


def table() -> dict[str, Any]:
    """Return the whole table."""
    loaded: dict[str, Any] = data.table("nccl_env")
    return loaded


@cache
def variables() -> dict[str, dict[str, Any]]:
    """Return the entry of each variable by name, with its component."""
    return {
        name: {**about, "component": component}
        for component, names in table()["variables"].items()
        for name, about in names.items()
    }


def release(text: str) -> tuple[int, ...]:
    """Split `2.21.5` into (2, 21, 5)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def newest(libraries: Iterable[Mapping[str, Any]]) -> str:
    """Return the newest NCCL release among the installed libraries, or an empty string if none has a release."""
    return max((str(each["version"]) for each in libraries if each.get("version")), key=release, default="")


def oldest(libraries: Iterable[Mapping[str, Any]]) -> str:
    """Return the oldest NCCL release of the host; an empty string if it has none, or one whose release is unknown."""
    return min((str(each.get("version") or "") for each in libraries), key=release, default="")


def only(libraries: Iterable[Mapping[str, Any]]) -> str:
    """Return the release if the host has one NCCL; an empty string if it has none or several, or the release is unknown."""
    versions = {each.get("version") for each in libraries}
    return str(versions.pop() or "") if len(versions) == 1 else ""


def since(about: Mapping[str, Any]) -> str:
    """Return the first release that reads a variable, from its tags or the user guide, or an empty string."""
    return min((about[key] for key in ("first", "guide") if key in about), key=release, default="")
