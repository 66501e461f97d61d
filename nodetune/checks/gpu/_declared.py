"""Compare a GPU's settings with those of the next boot, and find those that a site declared and nodetune keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodetune.api import FactsView, FactUnreadError
from nodetune.api.predicates import NEXT_BOOT
from nodetune.checks.shared.kept_at_boot import KEPT_IN
from nodetune.foundation import text

NEEDS = ("gpu.names", KEPT_IN)
LOCK_NEEDS = (KEPT_IN, "gpu.locks", "gpu.uuid")
NONE = "none"


def kept(facts: FactsView, setting: str) -> dict[str, Any]:
    """Return GPU → what nodetune-gpu.service sets at boot. Raise FactUnreadError if unknown."""
    content = facts.get(KEPT_IN)
    found = text.own_settings(content).get(setting) if isinstance(content, str) else None
    return {f"GPU{number}": value for number, value in found.items()} if isinstance(found, Mapping) else {}


def locks(facts: FactsView, setting: str) -> dict[str, Any]:
    """Return GPU → [lowest, highest MHz] that nodetune locked since the boot, or "none". Raise FactUnreadError."""
    known = facts.get("gpu.locks") or {}
    return {name: known.get(uuid, {}).get(setting, NONE) for name, uuid in facts.get("gpu.uuid", {}).items()}


def clocks_declared(facts: FactsView, setting: str, clocks: str) -> dict[str, Any]:
    """Return GPU → {model: lock now}, where a clock above the lock shows that it was released."""
    now = locks(facts, setting)
    for name, clock in facts[clocks].items():
        if isinstance(now.get(name), list) and clock > now[name][1]:
            now[name] = NONE
    return declared(facts, setting, now)


def declared(facts: FactsView, setting: str, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return GPU → {model: value now}, and with it what the next boot brings where that differs."""
    names, later = facts["gpu.names"], kept(facts, setting)
    found = {}
    for gpu, value in now.items():
        if gpu in names:
            found[gpu] = {names[gpu]: _one(value)}
            if later.get(gpu, NONE) != value:
                found[gpu][NEXT_BOOT] = _one(later.get(gpu, NONE))
    return found


def held_by_us(facts: FactsView, setting: str, clocks: Mapping[str, int]) -> set[str]:
    """Return the GPUs whose clock is held by a lock that a site declared and nodetune keeps."""
    try:
        later, known = kept(facts, setting), locks(facts, setting)
    except FactUnreadError:
        return set()
    return {
        gpu
        for gpu, clock in clocks.items()
        if isinstance(known.get(gpu), list) and later.get(gpu) == known[gpu] and known[gpu][0] <= clock <= known[gpu][1]
    }


def limited_by_us(facts: FactsView, limits: Mapping[str, int]) -> set[str]:
    """Return the GPUs whose power limit is the one that a site declared and nodetune keeps."""
    try:
        later = kept(facts, "power_limit")
    except FactUnreadError:
        return set()
    return {gpu for gpu, limit in limits.items() if later.get(gpu) == limit}


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 2 and value[0] == value[1] else value
