"""Writes looks: the numbers of each, and the settings that changed since the last. What was not read stays as it was."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, compress, repeat, tee
from operator import lt
from typing import Any, NamedTuple

from nodetune.facts.saved import AHEAD_SECONDS
from nodetune.foundation import by_key
from nodetune.foundation import text as plain_text
from nodetune.history import kinds, reader, resets, sound
from nodetune.history.connection import Database
from nodetune.history.names import SeriesNames
from nodetune.history.packing import pack
from nodetune.history.snapshot import Common, Snapshot
from nodetune.history.sound import Row
from nodetune.history.structure import Form, as_text, fact_print

MAX_KNOWN = 1 << 17
"""Facts and prints that are kept in memory."""

_HOSTS = (
    "SELECT h.name, h.id, h.cohort, h.settings, h.parts, h.carry, l.at AS last, l.packed AS last_packed FROM host h"
    " LEFT JOIN look l ON l.host = h.id AND l.at = (SELECT max(at) FROM look WHERE host = h.id AND at < 137438953472)"
    " WHERE h.name IN (?)"
)

"""Of host names. The number is conclusion_json.MAX_TIME: a look of a later time is damaged."""

_LAST_KNOWN = "SELECT before FROM change WHERE host = ? AND fact = ? AND before <> 'null' AND after = 'null' ORDER BY at DESC LIMIT 1"


class _Host(NamedTuple):
    """A row of a host with its last look."""

    id: int
    cohort: str | None
    settings: bytes
    parts: bytes
    carry: str | None
    at: int | None
    packed: bytes | None


@dataclass
class Recorded:
    """The number of rows written. `late`: looks that are not newer than the last one of their host, which are dropped."""

    looks: int = 0
    changes: int = 0
    resets: int = 0
    late: int = 0


@dataclass
class _Rows:
    """The rows of a batch."""

    fact: list[Row] = field(default_factory=list)
    look: list[Row] = field(default_factory=list)
    change: list[Row] = field(default_factory=list)
    event: list[Row] = field(default_factory=list)
    host: list[Row] = field(default_factory=list)


class Writer:
    """Writes batches of looks, each in a transaction of the caller's. After an error, use a new one: it remembers what it wrote."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._names = SeriesNames(db)
        self._prints: set[bytes] = set()
        self._common: set[Common] = set()
        self._parts: dict[tuple[bytes, tuple[str, ...]], tuple[bytes, frozenset[str]]] = {}
        self._series: dict[Form, _Series] = {}

    def write(self, looks: Sequence[Snapshot]) -> Recorded:
        """Write a look at each of these hosts."""
        done, rows = Recorded(), _Rows()
        self._number(looks)
        hosts = self._hosts({look.host for look in looks})
        for look in {look.host: look for look in looks}.values():
            host = hosts[look.host]
            if host.at is not None and look.at <= host.at:
                done.late += 1
                if host.at > time.time() + AHEAD_SECONDS:
                    self._db.lose("look", host.id)  # of the future: it keeps out all that come
                continue
            self._look(host, look, rows)
        done.late += len(looks) - len(hosts)
        done.looks, done.changes, done.resets = len(rows.look), len(rows.change), len(rows.event)
        for table in ("fact", "look", "change", "event"):
            self._db.add(table, getattr(rows, table))
        self._db.many("UPDATE host SET cohort = ?, settings = ?, parts = ?, carry = ? WHERE id = ?", rows.host)
        return done

    def _number(self, looks: Iterable[Snapshot]) -> None:
        """Know the series of the numbers of all looks."""
        if len(self._series) > MAX_KNOWN >> 5:  # a hostile fleet
            self._series.clear()
        every = {form for look in looks for form in look.forms} - self._series.keys()
        self._names.number({leaf for form in every for leaf in form.leaves})
        for form in every:
            self._series[form] = _Series(form.leaves, self._names.ids)

    def _hosts(self, names: set[str]) -> dict[str, _Host]:
        found = self._known(sorted(names))
        if missing := sorted(names - found.keys()):
            self._db.add("host (name)", [(name,) for name in missing])
            found |= self._known(missing)
        return found

    def _known(self, names: Sequence[str]) -> dict[str, _Host]:
        """Return hosts; what is damaged of them is as if it was never kept, and is written again."""
        return {row[0]: _Host(*row[1:]) for row in self._db.rows_of(_HOSTS, names, cure=True)}

    def _look(self, host: _Host, look: Snapshot, rows: _Rows) -> None:
        settings, cohort, changed = self._settings(host, look, rows)
        packed, carry, parts = self._numbers(host, look, changed, rows)
        rows.look.append((host.id, look.at, packed))
        now = (cohort, settings, parts, carry)
        if now != (host.cohort, host.settings, host.parts, host.carry):
            rows.host.append((*now, host.id))

    # settings

    def _settings(self, host: _Host, look: Snapshot, rows: _Rows) -> tuple[bytes, str | None, set[str]]:
        """Return the prints of the facts, the cohort, and the leaves that changed, which become rows."""
        if look.prints == host.settings:
            return look.prints, host.cohort, set()
        self._keep_facts(look, rows)
        if not host.settings:
            return look.prints, _cohort(look), set()
        settings = look.settings()
        before, now = reader.cut(host.settings), {fact.name: fact for fact in settings}
        same = {fact.print for fact in settings}.intersection(before)
        old = self._facts(each for each in before if each not in same)
        kept = {fact.name: fact.print for fact in settings}
        changes: dict[str, tuple[Any, Any]] = {}
        for name, (digest, was) in old.items():
            fact = now.get(name)
            if fact is None:
                kept[name] = digest
                continue
            is_now = json.loads(fact.text)
            if unread := [part for part in look.unread if _below(part, (name,))]:
                is_now |= {leaf: value for leaf, value in was.items() if _below(leaf, unread)}
                kept[name] = self._keep_fact(name, as_text(is_now), rows)
            changes |= {leaf: (was.get(leaf), value) for leaf, value in is_now.items() if was.get(leaf) != value}
            changes |= {leaf: (value, None) for leaf, value in was.items() if leaf not in is_now and value is not None}
        self._names.number(changes)
        rows.change += [
            (host.id, self._names.ids[leaf], look.at, json.dumps(was), json.dumps(is_now))
            for leaf, (was, is_now) in changes.items()
        ]
        changed = {leaf for leaf, (was, is_now) in changes.items() if self._counts(host, leaf, was, is_now)}
        return b"".join([kept[name] for name in sorted(kept)]), host.cohort or _cohort(look), changed

    def _counts(self, host: _Host, leaf: str, was: Any, is_now: Any) -> bool:
        """Tell whether a change may make counters start again: of a serial number, only that of an exchanged part."""
        if not resets.is_serial(leaf):
            return True
        if was is None and is_now is not None:
            known = self._db.one(_LAST_KNOWN, (host.id, self._names.ids[leaf]))
            was = None if known is None else self._db.made("change", sound.json_of, known)
        return resets.is_exchange(was, is_now)

    def _keep_facts(self, look: Snapshot, rows: _Rows) -> None:
        facts = [each for each in look.own.values() if each and each.print not in self._prints]
        if look.common not in self._common:
            self._common.add(look.common)
            facts += [each for each in look.common.settings if each and each.print not in self._prints]
        rows.fact += [(each.print, each.name, each.text) for each in facts]
        if len(self._prints) > MAX_KNOWN:
            self._prints.clear()
            self._common.clear()
        self._prints.update([each.print for each in facts])

    def _keep_fact(self, name: str, settings: str, rows: _Rows) -> bytes:
        digest = fact_print(name, settings)
        rows.fact.append((digest, name, settings))
        return digest

    def _facts(self, prints: Iterable[bytes]) -> dict[str, tuple[bytes, dict[str, Any]]]:
        """Return name → (print, its settings)."""
        return {name: (digest, leaves) for digest, name, leaves in reader.facts(self._db, prints)}

    # numbers

    def _numbers(self, host: _Host, look: Snapshot, changed: set[str], rows: _Rows) -> tuple[bytes, str | None, bytes]:
        """Return the packed numbers, what counters carry, and the print of the known parts.

        Counters are carried on over resets: what is stored never falls.
        """
        every, is_counter = self._series_of(look)
        digest, fresh = self._known_parts(host.parts, look, rows)
        if host.packed is None and not host.carry:
            return pack(every, look.values), None, digest
        before, carry = self._known_numbers(host)
        asked = {*_lower(before, compress(every, is_counter), compress(look.values, is_counter)), *carry}
        asked |= before.keys() - every  # not read
        if fresh or any(resets.is_serial(leaf) for leaf in changed):
            asked.update(every)
        if not asked:
            return pack(every, look.values), None, digest
        values = dict(zip(every, look.values, strict=True))
        moved, reasons, here = dict[int, int](), Counter[str](), _Parts(look.parts)
        for series in sorted(asked):
            leaf, was, added = self._names.names[series], before.get(series, 0), carry.get(series, 0)
            if series not in values and not here.listed(leaf):
                moved[series] = was
            elif kinds.of(leaf) in kinds.COUNTERS:
                raw = values.get(series, 0)
                grown, why = (0, "") if _below(leaf, fresh) else resets.grown(leaf, was - added, raw, changed)
                if series not in values and why == resets.CLEARED:  # zero, or not read: the next number decides
                    raw, grown, why = was - added, 0, ""
                carry[series] = was + grown - raw
                if was + grown != raw or series not in values:
                    moved[series] = was + grown
                reasons[why] += bool(why)
        rows.event += [
            (host.id, look.at, "reset", why, plain_text.count(count, "counter"))
            for why, count in reasons.items()
            if count
        ]
        if not moved:
            return pack(every, look.values), as_carry(carry), digest
        values |= moved
        ordered = sorted(values)
        return pack(ordered, [values[each] for each in ordered]), as_carry(carry), digest

    def _known_numbers(self, host: _Host) -> tuple[dict[int, int], dict[int, int]]:
        """Return the numbers of the last look, and what counters carry, of series that are there."""
        before = reader.unpacked(self._db, host.packed) if host.packed else {}
        carry = self._db.made("host", of_carry, host.carry) or {}
        known = self._names.names.keys()
        lost = {*before.keys() - known, *carry.keys() - known}
        self._db.lose("series", *lost)
        for series in lost:
            before.pop(series, None)
            carry.pop(series, None)
        return before, carry

    def _series_of(self, look: Snapshot) -> tuple[list[int], list[bool]]:
        """Return the series of the numbers of a look, and which of them are counters."""
        facts = [self._series[form] for form in look.forms]
        numbers = list(chain.from_iterable([each.numbers for each in facts]))
        return numbers, list(chain.from_iterable([each.is_counter for each in facts]))

    def _known_parts(self, digest: bytes, look: Snapshot, rows: _Rows) -> tuple[bytes, frozenset[str]]:
        """Return the print of all parts whose numbers were ever read, and those that never were before."""
        key = digest or b"", look.parts
        if key not in self._parts:
            if len(self._parts) > MAX_KNOWN >> 5:
                self._parts.clear()
            parts = set(look.parts)
            of_host = self._facts([digest]).get("parts") if digest else None
            known = set(of_host[1]) if of_host else parts
            text = json.dumps(dict.fromkeys(sorted(known | parts)))
            self._parts[key] = fact_print("parts", text), frozenset(parts - known)
            rows.fact.append((self._parts[key][0], "parts", text))
        return self._parts[key]


class _Series:
    """The numbers of a fact's series, and which of them are counters."""

    def __init__(self, leaves: Sequence[str], ids: Mapping[str, int]) -> None:
        self.numbers = [ids[leaf] for leaf in leaves]
        self.is_counter = [kinds.of(leaf) in kinds.COUNTERS for leaf in leaves]


def _lower(before: Mapping[int, int], counters: Iterable[int], read: Iterable[int]) -> Iterator[int]:
    """Return the counters that read less than before."""
    some, same = tee(counters)
    return compress(some, map(lt, read, map(before.get, same, repeat(0))))


def of_carry(text: str | None) -> dict[int, int]:
    """Return series → what it carries over its resets. Raise one of sound.PROBLEMS."""
    found = {int(series): added for series, added in sound.json_of(text).items()} if text else {}
    return dict(zip(found, sound.numbers(list(found.values())), strict=True))


def as_carry(carry: Mapping[int, int]) -> str | None:
    """Return what `of_carry` reads."""
    kept = {series: added for series, added in sorted(carry.items()) if added}
    return json.dumps(kept) if kept else None


class _Parts:
    """The parts that a look has read."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts

    @cached_property
    def _of(self) -> dict[str, list[str]]:
        return by_key((part.partition("/")[0], part) for part in self._parts)

    def listed(self, leaf: str) -> bool:
        """Tell whether the part of this leaf was read: then a number that is left out is zero."""
        return _below(leaf, self._of.get(leaf.partition("/")[0], ()))


def _below(leaf: str, parts: Iterable[str]) -> bool:
    return any(leaf == part or leaf.startswith(f"{part}/") for part in parts)


def _cohort(look: Snapshot) -> str | None:
    """Return what peers have in common: the product, and the number and model of GPUs."""
    facts = [(look.settings_of(name), leaf) for name, leaf in _COHORT.items()]
    return ", ".join(filter(None, (_said(fact.text, leaf) for fact, leaf in facts if fact))) or None


@lru_cache(MAX_KNOWN >> 9)
def _said(settings: str, leaf: str) -> str:
    return str(json.loads(settings).get(leaf, ""))


_COHORT = {"host.dmi.product_name": "host.dmi.product_name", "gpu.count": "gpu.count", "gpu.names": "gpu.names/GPU0"}
