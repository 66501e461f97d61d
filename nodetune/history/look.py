"""A look at a host: its facts sorted into numbers and settings. Pure, so that the processes of an audit do it.

Equal facts of many hosts are one object (see facts/memo.py): most are sorted once for the whole fleet.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nodetune.api.model import Absent, Each, Fact, HostFacts, Unread, Value
from nodetune.history import kinds

FORMS = 64
"""Sorted forms of one fact that are kept. One that differs on each host is not kept."""

FIGURE = "verify."
"""The beginning of the leaves of figures."""

MOST = 1 << 16
"""Places in facts that are known."""

PRINT = 12
"""Bytes of the print of a fact's settings."""


class SortedFact(NamedTuple):
    """One fact: its numbers, its settings as JSON (empty: it has none) with their print, the parts that were read or not.

    A part is the fact, or a subject of one that has several: `gpu.nvlink_errors/GPU3`.
    """

    name: str
    leaves: tuple[str, ...]
    values: tuple[int, ...]
    settings: str
    print: bytes
    parts: tuple[str, ...]
    unread: tuple[str, ...]


class Look(NamedTuple):
    """The result of a look at a host, in the order of the facts' names. `at`: Unix time of the collection.

    `numbers`: the facts with numbers. `prints`: those of all settings in a row.
    """

    host: str
    at: int
    facts: tuple[SortedFact, ...]
    numbers: tuple[SortedFact, ...]
    prints: bytes


def of_facts(host: str, at: int, facts: Sequence[SortedFact]) -> Look:
    """Return the look that these facts make."""
    numbers = tuple([each for each in facts if each.parts])
    return Look(host, at, tuple(facts), numbers, b"".join([each.print for each in facts]))


class _Place:
    """A place in facts: its leaf, what its values are, and the places below, by their keys."""

    __slots__ = ("below", "is_number", "is_passing", "is_setting", "leaf")

    def __init__(self, leaf: str) -> None:
        kind = kinds.of(leaf)
        self.leaf = leaf
        self.below: dict[str, _Place] = {}
        self.is_setting, self.is_number = kind in kinds.KEPT_ON_CHANGE, kind in kinds.NUMBERS
        self.is_passing = kind == kinds.PASSING


class Sorter:
    """Sorts the facts of many hosts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Fact, SortedFact]] = {}
        self._forms: dict[str, int] = {}
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._texts: dict[bytes, tuple[str, bytes]] = {}
        self._places: dict[str, _Place] = {}
        self._made = 0

    def look(self, facts: HostFacts) -> Look | None:
        """Return the look at a host; None for facts without a time of collection."""
        at = facts.about.get("time")
        if isinstance(at, bool) or not isinstance(at, int | float) or not 0 < at < 1 << 40:
            return None
        self._bound()
        known, every, found = self._known, facts.facts, []
        for name in sorted(every):
            fact = every[name]
            pair = known.get(id(fact))
            found.append(pair[1] if pair is not None and pair[1].name == name else self._sorted(name, fact))
        return of_facts(facts.host, int(at), found)

    def _bound(self) -> None:
        """Forget what a hostile fleet has made too much of."""
        if self._made > MOST:
            self._places, self._made = {}, 0
        for memo in (self._same, self._texts):
            if len(memo) > MOST >> 2:
                memo.clear()

    def _sorted(self, name: str, fact: Fact) -> SortedFact:
        made = self._of(name, fact)
        if self._forms.get(name, 0) < FORMS:
            self._forms[name] = self._forms.get(name, 0) + 1
            self._known[id(fact)] = fact, made  # the fact is kept too, so that no other object gets its identity
        return made

    def _of(self, name: str, fact: Fact) -> SortedFact:
        place = self._place(self._places, name, "")
        of = {name: fact} if not isinstance(fact, Each) else fact.of
        leaves: list[str] = []
        values: list[int] = []
        settings: dict[str, Any] = {}
        parts: list[str] = []
        unread: list[str] = []
        for key, one in of.items():
            part = self._place(place.below, key, f"{name}/") if isinstance(fact, Each) else place
            if isinstance(one, Value):
                parts.append(part.leaf)
                self._sort(part, one.value, leaves, values, settings)
            elif isinstance(one, Unread):
                unread.append(part.leaf)
        text, digest = "", b""
        if settings or (isinstance(fact, Absent) and place.is_setting):
            text, digest = self._text(name, settings)
        is_numbers = bool(leaves) or place.is_number
        return SortedFact(
            name,
            self._one_of(tuple(leaves)),
            tuple(values),
            text,
            digest,
            self._one_of(tuple(parts)) if is_numbers else (),
            tuple(unread),
        )

    def _sort(self, place: _Place, value: Any, leaves: list[str], values: list[int], settings: dict[str, Any]) -> None:
        if place.is_passing:
            return
        if type(value) is dict:
            below, above = place.below, f"{place.leaf}/"
            for key, each in value.items():
                self._sort(below.get(key) or self._place(below, key, above), each, leaves, values, settings)
        elif place.is_setting:
            settings[place.leaf] = value
        elif place.is_number and type(value) in (int, float):
            leaves.append(place.leaf)
            values.append(int(value))

    def _place(self, known: dict[str, _Place], key: str, above: str) -> _Place:
        found = known.get(key)
        if found is None:
            self._made += 1
            found = known[key] = _Place(above + key)
        return found

    def _text(self, name: str, settings: dict[str, Any]) -> tuple[str, bytes]:
        """Return the settings as JSON with their print. Equal ones are written once: often only a number has changed."""
        key = marshal.dumps((name, settings), 2)
        known = self._texts.get(key)
        if known is None:
            text = json.dumps(settings, sort_keys=True)
            known = self._texts[key] = text, fact_print(name, text)
        return known

    def _one_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return one object for equal names: it is sent to another process once."""
        return self._same.setdefault(names, names)


def fact_print(name: str, settings: str) -> bytes:
    """Return the print of a fact's settings."""
    return hashlib.blake2b(f"{name}\n{settings}".encode(), digest_size=PRINT).digest()


def of_figures(host: str, at: int, figures: Mapping[str, float]) -> Look:
    """Return a look that holds only figures of verify, in thousandths of their units: all else stays as it was.

    `figures`: `measurement.metric/subject` → value.
    """
    facts = [
        SortedFact(leaf.partition("/")[0], (leaf,), (round(value * 1000),), "", b"", (leaf,), ())
        for leaf, value in ((f"{FIGURE}{name}", value) for name, value in sorted(figures.items()))
    ]
    return of_facts(host, at, facts)
