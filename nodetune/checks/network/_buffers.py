"""The maximum of tcp_rmem and tcp_wmem, now and after the next boot."""

from __future__ import annotations

from typing import Any

from nodetune.api import FactsView, Observe


def needs(name: str) -> tuple[str, str]:
    return f"sysctl.net.ipv4.{name}", f"persisted.sysctl.net.ipv4.{name}"


def largest(name: str) -> Observe:
    """Observe the third number: the current one and, where a file sets it, that of the next boot."""
    now, next_boot = needs(name)

    def observe(facts: FactsView) -> dict[str, Any]:
        found = {"now": facts[now][2]}
        persisted = facts.readable(next_boot)
        if persisted:
            found[f"next boot ({persisted['file']})"] = persisted["value"][2]
        return found

    return observe
