"""Which events of the kernel log still matter, and when they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from nodetune.api import FactAbsentError, FactsView

UPTIME = "host.uptime_s"
RECENT = 7 * 86400
"""Older events left nothing behind that this boot still shows: an audit would repeat them until the next reboot."""


def require_read(facts: FactsView, name: str) -> None:
    """Raise FactAbsentError if an earlier version read the log, which did not look for these events."""
    if facts.readable(name) is None and facts["kernel_log.lockups"] is not None:
        raise FactAbsentError("the log was read by an earlier version, which did not look for this")


def recent(facts: FactsView, name: str) -> list[Mapping[str, Any]]:
    """Return the events of the last week, each with its `age` in seconds, oldest first.

    A log alone does not show how long ago that was: all its events count, and their age is None.
    """
    uptime = facts.readable(UPTIME)
    if uptime is None:
        return [{**event, "age": None} for event in facts[name]]
    aged = ({**event, "age": max(0.0, uptime - event["time"])} for event in facts[name])
    return [event for event in aged if event["age"] < RECENT]


def of_boot(facts: FactsView, name: str) -> str:
    """Return the first event of this boot, how many there were and when the last one was; empty without events."""
    events = facts[name]
    uptime = facts.readable(UPTIME)
    aged = [{**event, "age": None if uptime is None else max(0.0, uptime - event["time"])} for event in events]
    return times(aged, events[0]["text"]) if events else ""


def of_devices(facts: FactsView, name: str, within: float = inf) -> list[dict[str, Any]]:
    """Return the events of all devices, each with its `device` and `age`: of this boot, or of the last `within` seconds."""
    uptime = facts.readable(UPTIME)
    found = [{**event, "device": device} for device, events in facts[name].items() for event in events]
    aged = [{**event, "age": None if uptime is None else max(0.0, uptime - event["time"])} for event in found]
    return [event for event in aged if event["age"] is None or event["age"] < within]


def by_device(events: Iterable[Mapping[str, Any]], *kinds: str) -> dict[str, str]:
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
