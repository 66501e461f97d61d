"""Read settings of Lustre clients."""

from __future__ import annotations

from nodetune.api import FactsView, Observe


def least(kind: str, setting: str) -> Observe:
    """Observe the smallest value that any target of each file system has."""

    def observe(facts: FactsView) -> dict[str, int]:
        systems = facts[f"lustre.{kind}"]
        return {name: min(each[setting]) for name, each in systems.items() if each.get(setting)}

    return observe
