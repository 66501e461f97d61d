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
    return [event for event in aged(facts, name) if event["age"] is None or event["age"] < RECENT]


def aged(facts: FactsView, name: str) -> list[Mapping[str, Any]]:
    """Return the events of this boot, each with its `age`."""
    uptime = facts.readable(UPTIME)
    return [{**event, "age": None if uptime is None else max(0.0, uptime - event["time"])} for event in facts[name]]


def by_device(events: Iterable[Mapping[str, Any]], kinds: Iterable[str]) -> dict[str, str]:
    """Return device → its events of some kinds, each with the number of its repetitions."""
    found: dict[str, list[str]] = {}
    for event in events:
        if event["kind"] in kinds:
            often = f" ({event['times']} times), last" if event["times"] > 1 else ","
            found.setdefault(event["device"], []).append(f"{event['text']}{often} {ago(event['age'])}")
    return {device: "; ".join(texts) for device, texts in sorted(found.items())}


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
