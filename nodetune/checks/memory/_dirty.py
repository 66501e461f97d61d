"""How much dirty page cache the kernel allows, in bytes, from whichever of two settings is in effect."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from nodetune.api import AtLeast, FactAbsentError, FactsView, When

LARGE = When("memory.total_kb", AtLeast(64 << 20), "below 64 GiB of memory a percentage is a sensible limit")


TUNED = ("services.tuned", "services.tuned_profile")


def needs(kind: str) -> tuple[str, ...]:
    settings = (f"vm.{kind}_bytes", f"vm.{kind}_ratio")
    return (
        "memory.total_kb",
        *TUNED,
        *(f"{where}.{name}" for where in ("sysctl", "persisted.sysctl") for name in settings),
    )


def limits(facts: FactsView, kind: str, default_ratio: int) -> int | dict[str, int]:
    """Return the limit, or both limits if the next boot changes it. A ratio counts all memory: its upper bound.

    Raise FactAbsentError where the active profile of tuned sets it, as most of its profiles do: that is a decision.
    """
    _leave_to_tuned(facts, kind)
    percent = _percent(facts)
    size, ratio = (facts.get(f"persisted.sysctl.vm.{kind}_{unit}") for unit in ("bytes", "ratio"))
    clears = ratio and ratio["value"]  # with bytes set, the kernel has a ratio of 0: writing that changes nothing
    by_size = size and size["value"] and (not clears or _order(size) > _order(ratio))
    later = size["value"] if by_size else int(ratio["value"] if ratio else default_ratio) * percent
    return now(facts, kind) if now(facts, kind) == later else {"now": now(facts, kind), "next boot": int(later)}


def now(facts: FactsView, kind: str) -> int:
    return int(facts[f"sysctl.vm.{kind}_bytes"]) or int(facts[f"sysctl.vm.{kind}_ratio"]) * _percent(facts)


def _percent(facts: FactsView) -> int:
    return int(facts["memory.total_kb"]) * 1024 // 100


def _leave_to_tuned(facts: FactsView, kind: str) -> None:
    profile = facts.readable("services.tuned_profile") or {}
    theirs = profile.get("settings", {}).get("sysctl", {})
    active = (facts.readable("services.tuned") or {}).get("active") == "active"
    if active and any(f"vm.{kind}_{unit}" in theirs for unit in ("bytes", "ratio")):
        raise FactAbsentError(f"tuned's profile {profile.get('name')} sets vm.{kind}_ratio or vm.{kind}_bytes")


def _order(persisted: dict[str, Any]) -> tuple[bool, str, int]:
    """Return the sort key: each of the two settings clears the other, so the later line wins."""
    path = persisted["file"]
    return path == "/etc/sysctl.conf", PurePath(path).name, persisted["line"]
