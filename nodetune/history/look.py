"""A look at a host: its facts sorted into numbers and settings. Pure, so that the processes of an audit do it.

Equal facts of many hosts are one object (see facts/memo.py): of most hosts only what differs from the first of their kind is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, compress
from operator import is_not
from typing import NamedTuple

from nodetune.api.model import Fact, HostFacts
from nodetune.history.structure import FORMS, Form, Settings, Sorted, Structures

KIND = ("cpu.model", "gpu.names")
"""Hosts with the same facts, and the same of these, are of one kind."""

MOST_KINDS = 32
MOST_SHAPES = 1 << 12

FIGURES = ("verify.", "watch.", "tune.")
"""The beginnings of the leaves of figures."""


class Shape:
    """The names of the numbers of a look, and the parts that were read. Hosts of a kind have one: it is known by its identity.

    A part is a fact, or a subject of one that has several: `gpu.nvlink_errors/GPU3`.
    """

    __slots__ = ("leaves", "parts")

    def __init__(self, leaves: tuple[str, ...], parts: tuple[str, ...]) -> None:
        self.leaves, self.parts = leaves, parts


class Common:
    """The settings of the first host of a kind, which is known by its identity: fact → its place among them."""

    __slots__ = ("places", "settings")

    def __init__(self, names: Sequence[str], settings: Sequence[Settings | None]) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        self.settings = tuple(settings)


class Look(NamedTuple):
    """The result of a look at a host, in the order of the facts' names. `at`: Unix time of the collection.

    `own`: place among the common settings → those of this host. `prints`: those of all its settings in a row.
    `unread`: parts that could not be read. `values`: of the leaves of the shape.
    """

    host: str
    at: int
    common: Common
    own: Mapping[int, Settings | None]
    prints: bytes
    unread: tuple[str, ...]
    shape: Shape
    values: Sequence[int]

    def settings(self) -> list[Settings]:
        """Return the settings of all facts that have any."""
        every = list(self.common.settings)
        for place, own in self.own.items():
            every[place] = own
        return [each for each in every if each]

    def settings_of(self, name: str) -> Settings | None:
        """Return the settings of a fact."""
        place = self.common.places.get(name)
        return None if place is None else self.own.get(place, self.common.settings[place])


class _Kind:
    """The first host of a kind. `facts` are in its own order, all else in the order of their names, where `places` has each."""

    def __init__(self, facts: Mapping[str, Fact], made: Sequence[Sorted], shape: Shape) -> None:
        self.names = sorted(facts)
        self.common = Common(self.names, [each.settings for each in made])
        self.facts, self.places = list(facts.values()), [self.common.places[name] for name in facts]
        self.made, self.shape = made, shape
        self.prints = [_print(each.settings) for each in made]
        self.values = list(chain.from_iterable([each.values for each in made]))
        self.begins = list(accumulate([len(each.values) for each in made], initial=0))
        self.unread = _unread(made)


class Sorter:
    """Sorts the facts of many hosts."""

    def __init__(self) -> None:
        self._structures = Structures()
        self._known: dict[int, tuple[str, Fact, Sorted]] = {}
        self._forms: dict[str, int] = {}
        self._shapes: dict[tuple[Form, ...], Shape] = {}
        self._kinds: dict[tuple[object, ...], _Kind] = {}

    def look(self, facts: HostFacts) -> Look | None:
        """Return the look at a host; None for facts without a time of collection."""
        at = facts.about.get("time")
        if isinstance(at, bool) or not isinstance(at, int | float) or not 0 < at < 1 << 40:
            return None
        kind = self._kind(facts.facts)
        others: dict[int, Sorted] = {}
        own: dict[int, Settings | None] = {}
        prints, values, is_alike = kind.prints.copy(), kind.values.copy(), True
        for place in compress(kind.places, map(is_not, facts.facts.values(), kind.facts)):
            name, usual = kind.names[place], kind.made[place]
            made = self._sorted(name, facts.facts[name])
            others[place] = made
            if made.settings is not usual.settings:
                own[place], prints[place] = made.settings, _print(made.settings)
            is_alike = is_alike and made.form == usual.form
            if made.values and is_alike:
                values[kind.begins[place] : kind.begins[place + 1]] = made.values
        look = Look(facts.host, int(at), kind.common, own, b"".join(prints), kind.unread, kind.shape, values)
        return look if is_alike else self._unlike(look, facts.facts, kind, others)

    def _unlike(self, look: Look, facts: Mapping[str, Fact], kind: _Kind, others: Mapping[int, Sorted]) -> Look:
        """Return the look at a host whose numbers are not those of its kind. One that was read completely replaces one that was not."""
        made = [others.get(place, usual) for place, usual in enumerate(kind.made)]
        shape, unread = self._shape(made), _unread(made)
        if kind.unread and not unread:
            self._kinds[_key(facts)] = _Kind(facts, made, shape)
        values = list(chain.from_iterable([each.values for each in made]))
        return look._replace(unread=unread, shape=shape, values=values)

    def _kind(self, facts: Mapping[str, Fact]) -> _Kind:
        key = _key(facts)
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            made = [self._sorted(name, facts[name]) for name in sorted(facts)]
            kind = self._kinds[key] = _Kind(facts, made, self._shape(made))
        return kind

    def _shape(self, made: Iterable[Sorted]) -> Shape:
        """Return one object for equal names: it is sent to another process once."""
        key = tuple([each.form for each in made if each.form.parts])
        known = self._shapes.get(key)
        if known is None:
            if len(self._shapes) > MOST_SHAPES:  # a hostile fleet
                self._shapes.clear()
            leaves, parts = (chain.from_iterable([form[of] for form in key]) for of in (0, 1))
            known = self._shapes[key] = Shape(tuple(leaves), tuple(parts))
        return known

    def _sorted(self, name: str, fact: Fact) -> Sorted:
        known = self._known.get(id(fact))
        if known is not None and known[0] == name:
            return known[2]
        made = self._structures.sort(name, fact)
        if self._forms.get(name, 0) < FORMS:
            self._forms[name] = self._forms.get(name, 0) + 1
            self._known[id(fact)] = name, fact, made  # the fact is kept too, so that no other object gets its identity
        return made


def _key(facts: Mapping[str, Fact]) -> tuple[object, ...]:
    return *facts, *[id(facts.get(name)) for name in KIND]


def _print(settings: Settings | None) -> bytes:
    return settings.print if settings else b""


def _unread(made: Iterable[Sorted]) -> tuple[str, ...]:
    return tuple(chain.from_iterable([each.form.unread for each in made]))


_NOTHING = Common((), ())


def of_figures(host: str, at: int, figures: Mapping[str, float]) -> Look:
    """Return a look that holds only figures, in thousandths of their units: all else stays as it was.

    `figures`: `verify.measurement.metric/subject`, `watch.figure/GPU` or `tune.subject.case/default` → value. One of 0 is kept as the smallest number,
    for 0 means that it was never measured.
    """
    leaves = tuple(sorted(figures))
    values = [round(figures[name] * 1000) or 1 for name in leaves]
    return Look(host, at, _NOTHING, {}, b"", (), Shape(leaves, leaves), values)
