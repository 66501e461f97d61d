"""Extract the values of one host for a comparison: device, pool, and value as text. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import Absent, Each, Fact, HostFacts, Unread, Value
from nodetune.checks import fleet_metrics
from nodetune.checks.fleet_comparisons import Comparison
from nodetune.foundation import text as plain_text

MAX_LENGTH = 200
NOTHING = Absent("nothing of this kind on this host")


class Item(NamedTuple):
    """One device of a host. Items of one `pool` are compared with each other; `subject` is empty for the host itself."""

    subject: str
    pool: tuple[str, str, str, str]
    text: str


Seen = tuple[Item, ...]
Entry = Seen | Unread | Absent


def entry_of(comparison: Comparison, host: HostFacts) -> Entry:
    """Return the entry of a host. Data of an unexpected shape, which a host may send, is unread."""
    try:
        return _seen(comparison, host)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as problem:
        return Unread(f"the facts have an unexpected shape: {plain_text.plain(repr(problem), 120)}")


def numbers_of(comparison: Comparison, host: HostFacts) -> dict[str, float]:
    """Return device → the number that a comparison measures; empty if not available."""
    try:
        found = fleet_metrics.named(comparison.measure)(FactsView(host, comparison.needs))
    except (FactAbsentError, FactUnreadError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return {}
    return {plain_text.plain(device): value for device, value in found.items()}


def _seen(comparison: Comparison, host: HostFacts) -> Entry:
    """Return the items of a host, or Unread or Absent. If devices can be missing, no items is a valid answer."""
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
        within = _within(comparison, device, host)
        if within is None:
            continue
        for part, text, kind in _texts(comparison, found):
            subject = " ".join(each for each in (plain_text.plain(device), label, part) if each)
            own = device if comparison.alike == "name" else kind
            yield Item(subject, (label, part, own, within), text)


def _devices(comparison: Comparison, fact: Fact) -> Iterator[tuple[str, Any]]:
    """Yield each device (empty: the host) and its value: plain, Absent or Unread."""
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
    """Yield (field name if there are several, its value, the kind of device) of one device."""
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
            shown = len(value) if comparison.count and isinstance(value, list | dict) else value
            text = plain_text.plain(plain_text.value(shown, comparison.unit), MAX_LENGTH) or comparison.empty
            yield name if len(comparison.fields) > 1 else "", text, kind


def _within(comparison: Comparison, device: str, host: HostFacts) -> str | None:
    """Return the other fact that must be equal; None if unread, so that different kinds are never compared."""
    if not comparison.within:
        return ""
    fact = host.get(comparison.within)
    one = fact.of.get(device, Unread("")) if isinstance(fact, Each) else fact
    if isinstance(one, Unread):
        return None
    return plain_text.plain(plain_text.value(one.value)) if isinstance(one, Value) else ""
