"""Messages between hosts that measure together: they pass through this machine, which bounds them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodetune.onhost import protocol
from nodetune.remote.live_pool import Ended

MAX_MESSAGE_LENGTH = 1 << 20
"""Limit for a host's message to the others, as JSON. A real one has a thousandth of that."""

DEEPEST_MESSAGE = 12
LAST_NUMBER = 10_000
MAX_TOPIC_LENGTH = 200
TOO_LARGE = "its message to the other hosts is too large or nested too deeply"


def relayed(event: Mapping[str, Any] | Ended, sender: int) -> list[dict[str, Any]]:
    """Return the part of an event that the other hosts receive; `sender` is the place of its host in the group."""
    if isinstance(event, Ended):
        return [{"gone": sender}]
    told = event.get("tell")
    if not isinstance(told, dict) or not _is_number(told.get("number")) or not _is_topic(told.get("topic")):
        return []
    message = {"number": told["number"], "topic": told["topic"], "data": told.get("data")}
    if not _is_bounded(message["data"]):
        message = {**message, "topic": protocol.ENDED, "data": TOO_LARGE}
    return [{"told": {**message, "from": sender}}]


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < LAST_NUMBER


def _is_topic(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TOPIC_LENGTH


def _is_bounded(data: Any) -> bool:
    """Return whether other hosts may receive it: its size and depth must be harmless to write and to read."""
    level = [data]
    for _ in range(DEEPEST_MESSAGE):
        level = [part for each in level if isinstance(each, dict | list) for part in _parts(each)]
    try:
        return not level and len(json.dumps(data)) <= MAX_MESSAGE_LENGTH
    except ValueError:  # a number of more digits than Python writes
        return False


def _parts(data: Mapping[str, Any] | Sequence[Any]) -> Iterable[Any]:
    return data.values() if isinstance(data, Mapping) else data
