"""How much unwritten file data the kernel lets pile up, in bytes, whichever of two settings says so."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from nodetune.expect import AtLeast
from nodetune.model import When
from nodetune.view import View

LARGE = When("memory.total_kb", AtLeast(64 << 20), "below 64 GiB of memory a share of it is a sensible limit")


def needs(kind: str) -> tuple[str, ...]:
    settings = (f"vm.{kind}_bytes", f"vm.{kind}_ratio")
    return ("memory.total_kb", *(f"{where}.{name}" for where in ("sysctl", "persisted.sysctl") for name in settings))


def limits(facts: View, kind: str, default_ratio: int) -> int | dict[str, int]:
    """The limit; where the next boot sets another, both. A ratio is taken of all memory: its upper bound."""
    percent = int(facts["memory.total_kb"]) * 1024 // 100
    now = int(facts[f"sysctl.vm.{kind}_bytes"]) or int(facts[f"sysctl.vm.{kind}_ratio"]) * percent
    size, ratio = (facts.get(f"persisted.sysctl.vm.{kind}_{unit}") for unit in ("bytes", "ratio"))
    by_size = size and size["value"] and (ratio is None or _order(size) > _order(ratio))
    later = size["value"] if by_size else int(ratio["value"] if ratio else default_ratio) * percent
    return int(now) if now == later else {"now": now, "next boot": later}


def _order(persisted: dict[str, Any]) -> tuple[str, int]:
    """Each of the two settings clears the other, so that the one in the later line holds."""
    return PurePath(persisted["file"]).name, persisted["line"]
