"""Which events of the kernel log still matter, and when they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.api import FactsView

UPTIME = "host.uptime_s"
RECENT = 7 * 86400
"""Older events left nothing behind that this boot still shows: an audit would repeat them until the next reboot."""


def recent(facts: FactsView, name: str) -> list[Mapping[str, Any]]:
    """Return the events of the last week, each with its `age` in seconds, oldest first.

    A log alone does not show how long ago that was: all its events count, and their age is None.
    """
    uptime = facts.readable(UPTIME)
    if uptime is None:
        return [{**event, "age": None} for event in facts[name]]
    aged = ({**event, "age": max(0.0, uptime - event["time"])} for event in facts[name])
    return [event for event in aged if event["age"] < RECENT]


def ago(seconds: float | None) -> str:
    """Return the age of an event: `5 hours ago`."""
    if seconds is None:
        return "at an unknown time"
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        number = int(seconds // size)
        if number:
            return f"{number} {unit}{'s' * (number > 1)} ago"
    return "just now"


def times(events: Iterable[Mapping[str, Any]], words: str) -> str:
    """Return `words`, how often, and when the last one was; empty without events."""
    ages = [event["age"] for event in events]
    if not ages:
        return ""
    often = f" ({len(ages)} times)" if len(ages) > 1 else ""
    return f"{words}{often}, {'last ' if often else ''}{ago(ages[-1])}"
