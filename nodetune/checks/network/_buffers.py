"""The maximum of tcp_rmem and tcp_wmem, now and after the next boot."""

from __future__ import annotations

from typing import Any

from nodetune.api import FactsView, Observe
from nodetune.foundation import text

THREE, WITHOUT = 3, ", without the third number: the kernel keeps its own"


def needs(name: str) -> tuple[str, str]:
    return f"sysctl.net.ipv4.{name}", f"persisted.sysctl.net.ipv4.{name}"


def largest(name: str) -> Observe:
    """Observe the third number: the current one and, where a file sets it, that of the next boot.

    Of a line with fewer numbers the kernel takes what is there.
    """
    now, next_boot = needs(name)

    def observe(facts: FactsView) -> dict[str, Any]:
        found = {"now": facts[now][2]}
        persisted = facts.readable(next_boot)
        if persisted:
            value = persisted["value"]
            three = isinstance(value, list) and len(value) == THREE
            found[f"next boot ({persisted['file']})"] = value[2] if three else f"only {text.value(value)}{WITHOUT}"
        return found

    return observe
