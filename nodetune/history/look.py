"""A look at a host: its facts sorted into numbers and settings. Pure, so that the processes of an audit do it.

Equal facts of many hosts are one object (see facts/memo.py): most are sorted once for the whole fleet.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodetune.api.model import Absent, Each, Fact, HostFacts, Unread, Value
from nodetune.history import kinds

FORMS = 64
"""Sorted forms of one fact that are kept. One that differs on each host is not kept."""

FIGURE = "verify."
"""The beginning of the leaves of figures."""

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
    """The result of a look at a host, in the order of the facts' names. `at`: Unix time of the collection."""

    host: str
    at: int
    facts: tuple[SortedFact, ...]


class Sorter:
    """Sorts the facts of many hosts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Fact, SortedFact]] = {}
        self._forms: dict[str, int] = {}
        self._same: dict[Any, Any] = {}

    def look(self, facts: HostFacts) -> Look | None:
        """Return the look at a host; None for facts without a time of collection."""
        at = facts.about.get("time")
        if isinstance(at, bool) or not isinstance(at, int | float) or not 0 < at < 1 << 40:
            return None
        known, every, found = self._known, facts.facts, []
        for name in sorted(every):
            fact = every[name]
            pair = known.get(id(fact))
            found.append(pair[1] if pair is not None and pair[1].name == name else self._sorted(name, fact))
        return Look(facts.host, int(at), tuple(found))

    def _sorted(self, name: str, fact: Fact) -> SortedFact:
        made = self._made(name, fact)
        if self._forms.get(name, 0) < FORMS:
            self._forms[name] = self._forms.get(name, 0) + 1
            self._known[id(fact)] = fact, made  # the fact is kept too, so that no other object gets its identity
        return made

    def _made(self, name: str, fact: Fact) -> SortedFact:
        whole = [(f"{name}/{subject}", one) for subject, one in fact.of.items()] if isinstance(fact, Each) else []
        leaves: list[str] = []
        values: list[int] = []
        settings: dict[str, Any] = {}
        for part, one in whole or ((name, fact),):
            if isinstance(one, Value):
                _sort(part, one.value, leaves, values, settings)
        unread = tuple(part for part, one in whole or ((name, fact),) if isinstance(one, Unread))
        parts = tuple(part for part, one in whole or ((name, fact),) if isinstance(one, Value))
        text = ""
        if settings or (isinstance(fact, Absent) and kinds.of(name) in kinds.KEPT_ON_CHANGE):
            text = json.dumps(settings, sort_keys=True)
        return SortedFact(
            name,
            self._one_of(tuple(leaves)),
            tuple(values),
            text,
            fact_print(name, text) if text else b"",
            self._one_of(parts) if leaves or kinds.of(name) in kinds.NUMBERS else (),
            unread,
        )

    def _one_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return one object for equal names: it is sent to another process once."""
        if len(self._same) > 1 << 14:  # a hostile fleet
            self._same.clear()
        found: tuple[str, ...] = self._same.setdefault(names, names)
        return found


def _sort(leaf: str, value: Any, leaves: list[str], values: list[int], settings: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            _sort(f"{leaf}/{key}", each, leaves, values, settings)
        return
    kind = kinds.of(leaf)
    if kind in kinds.KEPT_ON_CHANGE:
        settings[leaf] = value
    elif kind in kinds.NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
        leaves.append(leaf)
        values.append(int(value))


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
    return Look(host, at, tuple(facts))
