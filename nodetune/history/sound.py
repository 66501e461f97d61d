"""Tells sound rows from damaged ones: each value must be of the kind of its column. A damaged row counts for nothing. Pure."""

import itertools
import re
import zlib
from collections.abc import Mapping, Sequence, Sized
from typing import Any, NamedTuple

from nodetune.api.conclusion_json import MAX_TIME
from nodetune.facts.document import STRICT
from nodetune.foundation import text
from nodetune.history.points import DAY

Row = tuple[Any, ...]

PROBLEMS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, zlib.error)
"""Raised where content of a row is not what was written there."""

MAX_BITS = 80

json_of = STRICT.decode


class _Kind(NamedTuple):
    type: type
    optional: bool = False
    low: int | None = None
    high: int = 0

    def holds(self, values: Sequence[Any]) -> bool:
        """Return whether all of these are values of the column."""
        types = set(map(type, values))
        types -= {type(None)} if self.optional else set()
        if types - {self.type}:
            return False
        some = [each for each in values if each is not None] if self.low is not None and self.optional else values
        return self.low is None or not some or (min(some) >= self.low and max(some) < self.high)


TEXTS = (
    "name finding leaves before after kind subject text source fault about place part edition state severity mark content"
    " why device who run reason"
)

_KINDS = {
    name: kind
    for names, kind in (
        ("id host fact series conclusion low high grown most figure usual hit", _Kind(int)),
        ("at since unproven", _Kind(int, False, 0, MAX_TIME)),
        ("gone last", _Kind(int, True, 0, MAX_TIME)),
        ("day", _Kind(int, False, 0, MAX_TIME // DAY)),
        ("digest packed", _Kind(bytes)),
        ("settings parts unjudged last_packed", _Kind(bytes, True)),
        ("cohort carry", _Kind(str, True)),
        (TEXTS, _Kind(str)),
    )
    for name in names.split()
}
"""Column, or the name that a statement gives one → what it holds. Of others, nothing is known."""


def rows(columns: Sequence[str], found: list[Row]) -> list[Row]:
    """Return the sound rows. Whole columns are checked, as nearly always all rows are sound."""
    kinds = [_KINDS.get(name) for name in columns]
    if all(kind is None or kind.holds(values) for kind, values in zip(kinds, zip(*found, strict=True), strict=False)):
        return found
    return [
        row for row in found if all(kind is None or kind.holds([one]) for kind, one in zip(kinds, row, strict=True))
    ]


def cured(columns: Sequence[str], row: Row) -> Row:
    """Return a row with None for what is damaged."""
    kinds = (_KINDS.get(name) for name in columns)
    return tuple([one if kind is None or kind.holds([one]) else None for kind, one in zip(kinds, row, strict=True)])


def is_optional(column: str) -> bool:
    """Return whether a row may lack a value here."""
    return column in _KINDS and _KINDS[column].optional


def counted(lost: Mapping[str, Sized]) -> list[str]:
    """Return for people how many rows were lost of each table."""
    return [f"{text.count(len(rows), 'row')} of {table}" for table, rows in sorted(lost.items())]


def as_text(content: bytes) -> str | bytes:
    """Return a text; as bytes if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def table(statement: str) -> str:
    """Return the table that the rows of a statement come from."""
    found = re.search(r"\bFROM (\w+)", statement)
    return found[1] if found else ""


def numbers(values: Sequence[Any]) -> Sequence[int]:
    """Return these values. Raise TypeError unless all are integers, which 64 bits hold even if a counter was carried on."""
    if set(map(type, values)) - {int} or any(abs(each(values)) >> MAX_BITS for each in (min, max) if values):
        raise TypeError("not integers")
    return values


def texts(found: Any) -> dict[str, str]:
    """Return this object. Raise TypeError unless it has texts alone, AttributeError for none."""
    if set(map(type, itertools.chain.from_iterable(found.items()))) - {str}:
        raise TypeError("not texts")
    return found  # type: ignore[no-any-return]


def leaves(content: str) -> dict[str, Any]:
    """Return the leaves of a fact. Raise one of PROBLEMS."""
    return dict(json_of(content).items())
