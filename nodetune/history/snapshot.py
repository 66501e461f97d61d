"""A look at a host: its facts sorted into numbers and settings. Pure, so that the processes of an audit do it.

Equal facts of many hosts are one object (see facts/memo.py): of most hosts only what differs from the first of their kind is sorted.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from operator import is_not
from typing import NamedTuple

from nodetune.api.model import Fact, HostFacts
from nodetune.foundation import text
from nodetune.history.structure import FORMS, FactSettings, Form, Sorted, Structures

KIND = ("cpu.model", "gpu.names")
"""Hosts with the same facts, and the same of these, are of one kind."""

MAX_KINDS = 32


class Common:
    """The settings of the first host of a kind, which is known by its identity: fact → its place among them."""

    __slots__ = ("places", "settings")

    def __init__(self, names: Sequence[str], settings: Sequence[FactSettings | None]) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        self.settings = tuple(settings)


class Snapshot(NamedTuple):
    """The result of a look at a host. `at`: Unix time of the collection.

    `own`: place among the common settings → those of this host. `prints`: of all its settings, in the order of the facts' names.
    A part is a fact, or a subject of one that has several: `gpu.nvlink_errors/GPU3`. `unread`: those that could not be read;
    `parts`: those with numbers that were. `forms`: of the facts that have numbers, in the order of `values`.
    """

    host: str
    at: int
    common: Common
    own: Mapping[int, FactSettings | None]
    prints: bytes
    unread: tuple[str, ...]
    parts: tuple[str, ...]
    forms: Sequence[Form]
    values: Sequence[int]

    def settings(self) -> list[FactSettings]:
        """Return the settings of all facts that have any."""
        every = list(self.common.settings)
        for place, own in self.own.items():
            every[place] = own
        return [each for each in every if each]

    def settings_of(self, name: str) -> FactSettings | None:
        """Return the settings of a fact."""
        place = self.common.places.get(name)
        return None if place is None else self.own.get(place, self.common.settings[place])


class _Kind:
    """The first host of a kind. `facts` are in its own order, all else in the order of their names, where `places` has each."""

    def __init__(self, facts: Mapping[str, Fact], made: Sequence[Sorted]) -> None:
        self.names = sorted(facts)
        self.common = Common(self.names, [each.settings for each in made])
        self.facts, self.places = list(facts.values()), [self.common.places[name] for name in facts]
        self.made = made
        self.prints = [_print(each.settings) for each in made]
        self.numbers = {place: (each.forms, each.values) for place, each in enumerate(made) if each.values}
        self.parts, self.unread = _parts(made), _unread(made)


class Sorter:
    """Sorts the facts of many hosts."""

    def __init__(self) -> None:
        self._structures = Structures()
        self._known: dict[int, tuple[str, Fact, Sorted]] = {}
        self._forms: dict[str, int] = {}
        self._kinds: dict[tuple[object, ...], _Kind] = {}

    def look(self, facts: HostFacts) -> Snapshot | None:
        """Return the look at a host; None for facts without a time of collection."""
        at = text.sound_time(facts.about.get("time"))
        if not at:
            return None
        kind = self._kind(facts.facts)
        own: dict[int, FactSettings | None] = {}
        others: dict[int, Sorted] = {}
        prints, numbers, is_alike = kind.prints.copy(), kind.numbers.copy(), True
        for place in compress(kind.places, map(is_not, facts.facts.values(), kind.facts)):
            name, usual = kind.names[place], kind.made[place]
            others[place] = made = self._sorted(name, facts.facts[name])
            if made.settings is not usual.settings:
                own[place], prints[place] = made.settings, _print(made.settings)
            if made.values or usual.values:
                numbers[place] = made.forms, made.values
            is_alike = is_alike and (made.forms == usual.forms or _same_parts(made, usual))
        look = Snapshot(
            facts.host,
            at,
            kind.common,
            own,
            b"".join(prints),
            kind.unread,
            kind.parts,
            [form for forms, _ in numbers.values() for form in forms if form.leaves],
            list(chain.from_iterable([values for _, values in numbers.values()])),
        )
        return look if is_alike else self._unlike(look, facts.facts, kind, others)

    def _unlike(self, look: Snapshot, facts: Mapping[str, Fact], kind: _Kind, others: Mapping[int, Sorted]) -> Snapshot:
        """Return the look at a host with other parts than its kind has. One that was read completely replaces one that was not."""
        made = [others.get(place, usual) for place, usual in enumerate(kind.made)]
        unread = _unread(made)
        if kind.unread and not unread:
            self._kinds[_key(facts)] = _Kind(facts, made)
        return look._replace(unread=unread, parts=_parts(made))

    def _kind(self, facts: Mapping[str, Fact]) -> _Kind:
        key = _key(facts)
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MAX_KINDS:
                self._kinds.clear()
            kind = self._kinds[key] = _Kind(facts, [self._sorted(name, facts[name]) for name in sorted(facts)])
        return kind

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


def _print(settings: FactSettings | None) -> bytes:
    return settings.print if settings else b""


def _same_parts(one: Sorted, other: Sorted) -> bool:
    return _parts([one]) == _parts([other]) and _unread([one]) == _unread([other])


def _parts(made: Iterable[Sorted]) -> tuple[str, ...]:
    return tuple(chain.from_iterable([form.parts for each in made for form in each.forms]))


def _unread(made: Iterable[Sorted]) -> tuple[str, ...]:
    return tuple(chain.from_iterable([form.unread for each in made for form in each.forms]))


_NOTHING = Common((), ())


def of_figures(host: str, at: int, figures: Mapping[str, float]) -> Snapshot:
    """Return a look that holds only figures, in thousandths of their units: all else stays as it was.

    `figures`: `verify.measurement.metric/subject`, `watch.figure/GPU` or `tune.subject.case/default` → value. One of 0 is kept as the smallest number,
    for 0 means that it was never measured.
    """
    leaves = tuple(sorted(figures))
    values = [round(figures[name] * 1000) or 1 for name in leaves]
    return Snapshot(host, at, _NOTHING, {}, b"", (), leaves, [Form(leaves, leaves)], values)
