"""A look at a host: its facts sorted into numbers and settings. Pure, so that the processes of an audit do it.

Equal facts of many hosts are one object (see facts/memo.py): most are sorted once for the whole fleet.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from nodetune.api.model import Each, Fact, HostFacts, Unread, Value
from nodetune.history import kinds

FORMS = 64
"""Sorted forms of one fact that are kept. One that differs on each host is not kept."""

FIGURE = "verify."
"""The beginning of the leaves of figures."""

MOST = 1 << 16
"""Places in facts that are known."""

as_text = json.JSONEncoder(sort_keys=True).encode
"""Settings as JSON: json.dumps would make an encoder each time."""

PRINT = 12
"""Bytes of the print of a fact's settings."""


class Settings(NamedTuple):
    """The settings of one fact as JSON, and their print."""

    name: str
    text: str
    print: bytes


class Shape:
    """The names of the numbers of a look, and the parts that were read. Hosts of a kind have one: it is known by its identity.

    A part is a fact, or a subject of one that has several: `gpu.nvlink_errors/GPU3`.
    """

    __slots__ = ("leaves", "parts")

    def __init__(self, leaves: tuple[str, ...], parts: tuple[str, ...]) -> None:
        self.leaves, self.parts = leaves, parts


class Look(NamedTuple):
    """The result of a look at a host, in the order of the facts' names. `at`: Unix time of the collection.

    `prints`: those of all settings in a row. `unread`: parts that could not be read. `values`: of the leaves of the shape.
    """

    host: str
    at: int
    settings: tuple[Settings, ...]
    prints: bytes
    unread: tuple[str, ...]
    shape: Shape
    values: tuple[int, ...]


class _Sorted(NamedTuple):
    """A fact: its settings, the leaves and values of its numbers, and the parts that were read (of a number) or not."""

    name: str
    settings: Settings | None = None
    leaves: tuple[str, ...] = ()
    values: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class _Place:
    """A place in facts: its leaf, what its values are, and the places below, by their keys."""

    __slots__ = ("below", "is_number", "is_passing", "is_setting", "known", "leaf")

    def __init__(self, leaf: str) -> None:
        kind = kinds.of(leaf)
        self.leaf = leaf
        self.below: dict[str, _Place] = {}
        self.known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.is_setting, self.is_number = kind in kinds.KEPT_ON_CHANGE, kind in kinds.NUMBERS
        self.is_passing = kind == kinds.PASSING


class Sorter:
    """Sorts the facts of many hosts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Fact, _Sorted]] = {}
        self._forms: dict[str, int] = {}
        self._shapes: dict[tuple[tuple[str, ...], ...], Shape] = {}
        self._texts: dict[bytes, Settings] = {}
        self._places: dict[str, _Place] = {}
        self._made = 0

    def look(self, facts: HostFacts) -> Look | None:
        """Return the look at a host; None for facts without a time of collection."""
        at = facts.about.get("time")
        if isinstance(at, bool) or not isinstance(at, int | float) or not 0 < at < 1 << 40:
            return None
        self._bound()
        known, every = self._known, facts.facts
        settings: list[Settings] = []
        numbers: list[_Sorted] = []
        unread: list[str] = []
        for name in sorted(every):
            fact = every[name]
            pair = known.get(id(fact))
            made = pair[1] if pair is not None and pair[1].name == name else self._sorted(name, fact)
            if made.settings:
                settings.append(made.settings)
            if made.parts:
                numbers.append(made)
            if made.unread:
                unread += made.unread
        return Look(
            facts.host,
            int(at),
            tuple(settings),
            b"".join([each.print for each in settings]),
            tuple(unread),
            self._shape(numbers),
            tuple(chain.from_iterable([each.values for each in numbers])),
        )

    def _bound(self) -> None:
        """Forget what a hostile fleet has made too much of."""
        if self._made > MOST:
            self._places, self._made = {}, 0
        for memo in (self._shapes, self._texts):
            if len(memo) > MOST >> 2:
                memo.clear()

    def _shape(self, numbers: Sequence[_Sorted]) -> Shape:
        """Return one object for equal names: it is sent to another process once."""
        key = *[each.leaves for each in numbers], *[each.parts for each in numbers]
        known = self._shapes.get(key)
        if known is None:
            leaves, parts = chain(*key[: len(numbers)]), chain(*key[len(numbers) :])
            known = self._shapes[key] = Shape(tuple(leaves), tuple(parts))
        return known

    def _sorted(self, name: str, fact: Fact) -> _Sorted:
        made = self._of(name, fact)
        if self._forms.get(name, 0) < FORMS:
            self._forms[name] = self._forms.get(name, 0) + 1
            self._known[id(fact)] = fact, made  # the fact is kept too, so that no other object gets its identity
        return made

    def _of(self, name: str, fact: Fact) -> _Sorted:
        place = self._places.get(name) or self._place(self._places, name, "")
        if place.is_passing:
            return _Sorted(name)
        if isinstance(fact, Each):
            numbers = self._counts(place, fact)
            if numbers:
                return numbers
            below = place.below
            of = [(below.get(key) or self._place(below, key, f"{name}/"), one) for key, one in fact.of.items()]
        else:
            of = [(place, fact)]
        leaves: list[str] = []
        values: list[int] = []
        settings: dict[str, Any] = {}
        parts: list[str] = []
        unread: list[str] = []
        for part, one in of:
            if isinstance(one, Value):
                parts.append(part.leaf)
                self._sort(part, one.value, leaves, values, settings)
            elif isinstance(one, Unread):
                unread.append(part.leaf)
        is_numbers = bool(leaves) or place.is_number
        is_settings = bool(settings) or not (is_numbers or len(unread) == len(of) > 0)
        return _Sorted(
            name,
            self._text(name, settings) if is_settings else None,
            tuple(leaves),
            tuple(values),
            tuple(parts) if is_numbers else (),
            tuple(unread),
        )

    def _counts(self, place: _Place, fact: Each) -> _Sorted | None:
        """Sort a fact with a whole number for each subject, as most that differ on each host; return None for others."""
        if not place.is_number:
            return None
        values: tuple[Any, ...] = tuple([one.value if type(one) is Value else None for one in fact.of.values()])
        if set(map(type, values)) != {int}:
            return None
        subjects = tuple(fact.of)
        leaves = place.known.get(subjects)
        if leaves is None:
            places = [place.below.get(key) or self._place(place.below, key, f"{place.leaf}/") for key in subjects]
            leaves = tuple([each.leaf for each in places]) if all(each.is_number for each in places) else ()
            place.known[subjects] = leaves
        return _Sorted(place.leaf, None, leaves, values, leaves) if leaves else None

    def _sort(self, place: _Place, value: Any, leaves: list[str], values: list[int], settings: dict[str, Any]) -> None:
        if type(value) is dict:
            below, of = place.below, value
        else:
            below, of = {"": place}, {"": value}
        for key, each in of.items():
            inner = below.get(key) or self._place(below, key, f"{place.leaf}/")
            if inner.is_passing:
                continue
            if type(each) is dict:
                if each:
                    self._sort(inner, each, leaves, values, settings)
            elif inner.is_setting:
                settings[inner.leaf] = each
            elif inner.is_number and type(each) in (int, float):
                leaves.append(inner.leaf)
                values.append(int(each))

    def _place(self, known: dict[str, _Place], key: str, above: str) -> _Place:
        found = known.get(key)
        if found is None:
            self._made += 1
            found = known[key] = _Place(above + key)
        return found

    def _text(self, name: str, settings: dict[str, Any]) -> Settings:
        """Return the settings as JSON with their print. Equal ones are written once: often only a number has changed."""
        key = marshal.dumps((name, settings), 2)
        known = self._texts.get(key)
        if known is None:
            text = as_text(settings)
            known = self._texts[key] = Settings(name, text, fact_print(name, text))
        return known


def fact_print(name: str, settings: str) -> bytes:
    """Return the print of a fact's settings."""
    return hashlib.blake2b(f"{name}\n{settings}".encode(), digest_size=PRINT).digest()


def of_figures(host: str, at: int, figures: Mapping[str, float]) -> Look:
    """Return a look that holds only figures of verify, in thousandths of their units: all else stays as it was.

    `figures`: `measurement.metric/subject` → value.
    """
    leaves = tuple([f"{FIGURE}{name}" for name in sorted(figures)])
    values = tuple([round(figures[name] * 1000) for name in sorted(figures)])
    return Look(host, at, (), b"", (), Shape(leaves, leaves), values)
