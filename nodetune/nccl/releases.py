"""Which NCCL release is newer, which one the host has, and since when a name is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any


def release(text: str) -> tuple[int, ...]:
    """`2.21.5` → (2, 21, 5)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def newest(libraries: Iterable[Mapping[str, Any]]) -> str:
    """The newest NCCL release among the installed libraries; empty where none tells its release."""
    return max((str(each["version"]) for each in libraries if each.get("version")), key=release, default="")


def since(about: Mapping[str, Any]) -> str:
    """The first release that knows a variable, by its tags or by the user guide; empty where neither says so."""
    return min((about[key] for key in ("first", "guide") if key in about), key=release, default="")
