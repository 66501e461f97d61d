"""Sorts facts into settings and numbers. Facts of one structure (keys, and types of values) are sorted by one plan. Pure."""

import hashlib
import json
import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, islice, repeat
from operator import is_, itemgetter
from typing import Any, NamedTuple

from nodetune.api.model import Absent, Each, Fact, Unread, Value
from nodetune.history import kinds

FORMS = 64
"""Texts that are kept of the settings of one structure: usually only counters differ."""

MAX_PLACES = 1 << 17
"""Places in structures that are known."""

as_text = json.JSONEncoder(sort_keys=True).encode
"""Settings as JSON: json.dumps would make an encoder each time."""

PLANS = 16
"""Structures of one fact that are planned whole. Where each host counts errors of other devices, there are as many as hosts."""

PRINT = 12
"""Bytes of the print of a fact's settings."""


class FactSettings(NamedTuple):
    """The settings of one fact as JSON, and their print."""

    name: str
    text: str
    print: bytes


@dataclass(eq=False)
class Form:
    """The leaves of a fact's numbers, and the parts that were read (of a fact with numbers) or could not be.

    Facts of one structure have one, which is known by its identity, and sent to another process once.
    """

    leaves: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class Sorted(NamedTuple):
    """A fact: its settings, and the values of its numbers: those of the first form, then of the next."""

    forms: tuple[Form, ...] = ()
    settings: FactSettings | None = None
    values: tuple[int, ...] = ()


NOTHING = Sorted()


class Structures:
    """The plans for the structures of facts that were seen."""

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._places = 0
        self._planned: dict[str, int] = {}
        self._subjects: dict[tuple[Any, ...], Sorted] = {}
        self._lasting: dict[str, _Lasting] = {}

    def sort(self, name: str, fact: Fact) -> Sorted:
        """Return a fact, sorted."""
        if kinds.of(name) == kinds.PASSING:
            return NOTHING
        if type(fact) is Value and type(fact.value) is dict:
            lasting = self._lasting.get(name)
            if lasting is None:
                if len(self._lasting) > MAX_PLACES >> 5:  # a hostile fleet
                    self._lasting.clear()
                lasting = self._lasting[name] = _Lasting(name, fact.value)
            if lasting.is_some:
                return lasting.sorted(fact.value, lambda: self._sort(name, fact))
        return self._sort(name, fact)

    def _sort(self, name: str, fact: Fact) -> Sorted:
        if type(fact) is Each and self._planned.get(name, 0) >= PLANS and kinds.of(name) in kinds.NUMBERS:
            subjects = [self._subject(name, subject, one) for subject, one in fact.of.items()]
            if not any(each.settings for each in subjects):
                return _joined(subjects)
        return self._by_plan(name, fact)

    def _subject(self, name: str, subject: str, one: Value | Absent | Unread) -> Sorted:
        """Return a subject of a fact of numbers, sorted: most are as they were on another host."""
        key = name, subject, marshal.dumps(one.value, 2) if type(one) is Value else type(one)
        made = self._subjects.get(key)
        if made is None:
            made = self._by_plan(name, Each({subject: one}))
            if len(self._subjects) >= MAX_PLACES >> 3:
                self._subjects.clear()
            self._subjects[key] = made
        return made

    def _by_plan(self, name: str, fact: Fact) -> Sorted:
        structure, values = _flat(name, fact)
        plan = self._plans.get(structure)
        if plan is None:
            self._places += len(values)
            if self._places > MAX_PLACES:  # a hostile fleet
                self._plans, self._planned, self._places = {}, {}, len(values)
            plan = self._plans[structure] = _Plan(*structure)
            self._planned[name] = self._planned.get(name, 0) + 1
        return plan.sort(values)


def _joined(subjects: Sequence[Sorted]) -> Sorted:
    """Return the fact of these subjects, which have only numbers."""
    forms = tuple([form for each in subjects for form in each.forms])
    return Sorted(forms, None, tuple([value for each in subjects for value in each.values]))


class _Lasting:
    """The items of a fact that are not passing. A service that has started again has another process, and nothing else."""

    def __init__(self, name: str, value: Mapping[str, Any]) -> None:
        lasting = [key for key in value if kinds.of(f"{name}/{key}") != kinds.PASSING]
        self._keys, self._of = tuple(value), itemgetter(*lasting) if lasting else None
        self.is_some = len(lasting) < len(value) and bool(lasting)
        self._known: dict[bytes, Sorted] = {}

    def sorted(self, value: Mapping[str, Any], sort: Callable[[], Sorted]) -> Sorted:
        """Return what `sort` makes of this value, or made of one that was the same but for what is passing."""
        if tuple(value) != self._keys or not self._of:
            return sort()
        key = marshal.dumps(self._of(value), 2)
        made = self._known.get(key)
        if made is None:
            made = sort()
            if len(self._known) < FORMS:
                self._known[key] = made
        return made


def _flat(name: str, fact: Fact) -> tuple[tuple[Any, ...], list[Any]]:
    """Return (name, subjects, types, sizes of dictionaries, their keys, types below, …) and all values, depth after depth."""
    subjects, ones = (tuple(fact.of), fact.of.values()) if isinstance(fact, Each) else (None, (fact,))
    depth: list[Any] = [one.value if type(one) is Value else one for one in ones]
    structure: list[Any] = [name, subjects]
    every = depth
    while True:
        types = tuple(map(type, depth))
        structure.append(types)
        if dict not in types:
            return tuple(structure), every
        below = list(compress(depth, map(is_, types, repeat(dict))))
        sizes = tuple(map(len, below))
        below = list(filter(None, below))
        structure += sizes, tuple(chain.from_iterable(below))
        depth = list(chain.from_iterable(map(dict.values, below)))
        every = every + depth


class _Plan:
    """The numbers and settings among the values of facts with one structure."""

    def __init__(self, name: str, subjects: Sequence[str] | None, *depths: Any) -> None:
        self._name, self._texts = name, dict[bytes, FactSettings]()
        tops = [name] if subjects is None else [f"{name}/{subject}" for subject in subjects]
        types = list(chain.from_iterable(depths[::3]))
        leaves = _leaves(tops, depths)
        kinds_of = ["" if of in _NO_VALUES else kinds.of(leaf) for leaf, of in zip(leaves, types, strict=True)]
        self._is_number = [
            kind in kinds.NUMBERS and of in (int, float) for kind, of in zip(kinds_of, types, strict=True)
        ]
        self._is_setting = [kind in kinds.KEPT_ON_CHANGE for kind in kinds_of]
        self._settings = list(compress(leaves, self._is_setting))
        numbers = tuple(compress(leaves, self._is_number))
        of = list(zip(tops, depths[0], strict=True))
        unread = tuple([top for top, each in of if each is Unread])
        is_numbers = bool(numbers) or kinds.of(name) in kinds.NUMBERS
        read = tuple([top for top, each in of if each not in (Absent, Unread)]) if is_numbers else ()
        self._forms = (Form(numbers, read, unread),) if numbers or read or unread else ()
        self._has_settings = bool(self._settings) or not (is_numbers or len(unread) == len(of) > 0)

    def sort(self, values: Sequence[Any]) -> Sorted:
        """Return a fact with these values."""
        settings = self._text(list(compress(values, self._is_setting))) if self._has_settings else None
        return Sorted(self._forms, settings, tuple(map(int, compress(values, self._is_number))))

    def _text(self, values: list[Any]) -> FactSettings:
        key = marshal.dumps(values, 2)
        known = self._texts.get(key)
        if known is None:
            text = as_text(dict(zip(self._settings, values, strict=True)))
            known = FactSettings(self._name, text, fact_print(self._name, text))
            if len(self._texts) < FORMS:
                self._texts[key] = known
        return known


_NO_VALUES = (Absent, Unread, dict)


def _leaves(tops: Sequence[str], depths: Sequence[Any]) -> list[str]:
    """Return the leaves of a structure in the order of its values."""
    every = above = list(tops)
    for types, sizes, keys in zip(depths[:-1:3], depths[1::3], depths[2::3], strict=True):
        parents, left = compress(above, map(is_, types, repeat(dict))), iter(keys)
        above = [f"{leaf}/{key}" for leaf, size in zip(parents, sizes, strict=True) for key in islice(left, size)]
        every = every + above
    return every


def fact_print(name: str, settings: str) -> bytes:
    """Return the print of a fact's settings."""
    return hashlib.blake2b(f"{name}\n{settings}".encode(), digest_size=PRINT).digest()
