"""What one host has to say about a comparison: device, who it is held against, and its value as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from nodetune import show
from nodetune.fleet.comparisons import Comparison
from nodetune.model import Absent, Each, Fact, HostFacts, Unread, Value

LONGEST = 200
NOTHING = Absent("nothing of this kind on this host")


class Item(NamedTuple):
    """One device of a host. Items of one `pool` are held against each other; `subject` is empty for the host itself."""

    subject: str
    pool: tuple[str, str, str, str]
    text: str


Seen = tuple[Item, ...]


def seen(comparison: Comparison, host: HostFacts) -> Seen | Unread | Absent:
    """The items of a host; Unread or Absent where its facts say nothing. Where devices can be missing, none is an answer."""
    items: list[Item] = []
    answered, why = False, ""
    for name in comparison.facts:
        fact = host.get(name)
        if isinstance(fact, Unread):
            why = why or f"{name}: {fact.reason}"
        elif not isinstance(fact, Absent) or comparison.absent:
            answered = True
            items += _items(comparison, name, fact, host)
    if items or (answered and comparison.missing):
        return tuple(items)
    return Unread(why) if why else NOTHING


def _items(comparison: Comparison, name: str, fact: Fact, host: HostFacts) -> Iterator[Item]:
    several = len(comparison.facts) > 1
    label = name.partition(".")[2] if several else ""
    for device, found in _devices(comparison, fact):
        if isinstance(found, Unread) or (comparison.without and comparison.without.fullmatch(device)):
            continue
        beside = _beside(comparison, device, host)
        if beside is None:
            continue
        for part, text, kind in _texts(comparison, found):
            subject = " ".join(each for each in (show.plain(device), label, part) if each)
            own = device if comparison.alike == "name" else kind
            yield Item(subject, (label, part, own, beside), text)


def _devices(comparison: Comparison, fact: Fact) -> Iterator[tuple[str, Any]]:
    """Device (empty: the host) and what is known of it: a plain value, Absent or Unread."""
    match fact:
        case Each(of):
            for device, one in of.items():
                yield device, one.value if isinstance(one, Value) else one
        case Value(value):
            yield from _records(comparison, value)
        case _:
            yield "", fact


def _records(comparison: Comparison, value: Any) -> Iterator[tuple[str, Any]]:
    if comparison.count and not comparison.fields:
        yield "", value
    elif comparison.records is True and isinstance(value, dict):
        yield from value.items()
    elif comparison.records and isinstance(value, list):
        for record in value:
            if isinstance(record, dict) and comparison.records in record:
                yield str(record[str(comparison.records)]), record
    elif not comparison.records:
        yield "", value


def _texts(comparison: Comparison, found: Any) -> Iterator[tuple[str, str, str]]:
    """(which field where there are several, its value, what the device is alike by) of one device."""
    if isinstance(found, Absent):
        if comparison.absent:
            yield "", comparison.absent, ""
        return
    record = found if isinstance(found, dict) else {}
    if any(not pattern.search(str(record.get(name, ""))) for name, pattern in comparison.only.items()):
        return
    kind = str(record.get(comparison.alike, "")) if comparison.alike not in ("all", "name") else ""
    for name in comparison.fields or ("",):
        value = record.get(name) if name else found
        if value is not None:
            told = len(value) if comparison.count and isinstance(value, list | dict) else value
            text = show.plain(show.value(told, comparison.unit), LONGEST) or comparison.empty
            yield name if len(comparison.fields) > 1 else "", text, kind


def _beside(comparison: Comparison, device: str, host: HostFacts) -> str | None:
    """The other fact that must be the same; None where it is not known, so that nothing is held against the wrong kind."""
    if not comparison.beside:
        return ""
    fact = host.get(comparison.beside)
    one = fact.of.get(device, Unread("")) if isinstance(fact, Each) else fact
    if isinstance(one, Unread):
        return None
    return show.plain(show.value(one.value)) if isinstance(one, Value) else ""
