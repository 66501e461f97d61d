"""Read settings of Lustre clients."""

from __future__ import annotations

from typing import Any

from nodetune.api import FactAbsentError, FactsView, Observe


def systems(facts: FactsView, kind: str) -> dict[str, dict[str, Any]]:
    """Return the settings of each file system. Raise FactAbsentError if no Lustre is mounted."""
    if not any(point["type"] == "lustre" for point in facts["mounts.points"].values()):
        raise FactAbsentError("no Lustre file system is mounted")
    found: dict[str, dict[str, Any]] = facts[f"lustre.{kind}"]
    return found


def least(kind: str, setting: str) -> Observe:
    """Observe the smallest value that any target of each file system has."""

    def observe(facts: FactsView) -> dict[str, int]:
        return {name: min(each[setting]) for name, each in systems(facts, kind).items() if each.get(setting)}

    return observe
