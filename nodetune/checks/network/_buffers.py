"""The largest of the three sizes of tcp_rmem and tcp_wmem, now and after the next boot."""

from __future__ import annotations

from typing import Any

from nodetune.model import Observe
from nodetune.view import View


def needs(name: str) -> tuple[str, str]:
    return f"sysctl.net.ipv4.{name}", f"persisted.sysctl.net.ipv4.{name}"


def largest(name: str) -> Observe:
    """An observation of the third number, as it is and as the next boot sets it (where a file says)."""
    now, next_boot = needs(name)

    def observe(facts: View) -> dict[str, Any]:
        found = {"now": facts[now][2]}
        persisted = facts.readable(next_boot)
        if persisted:
            found[f"next boot ({persisted['file']})"] = persisted["value"][2]
        return found

    return observe
