"""Writes a sound copy of a history: all that can be read, without what is damaged or belongs to nothing. The history stays as it is."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodetune.api.conclusion_json import MAX_TIME
from nodetune.foundation import nodeset, text
from nodetune.history import conclusions, judging, postgres, reader, sound, writer
from nodetune.history.connection import Database, HistoryError, PlaceError
from nodetune.history.packing import pack, unpack
from nodetune.history.points import DAY
from nodetune.history.schema import MIGRATIONS, NUMBERED, TABLES, tables
from nodetune.history.sound import Row
from nodetune.history.structure import fact_print

OF_FIRST_EDITION = tables(1)
KEYS = {"fact": "digest", "series": "id", "unjudged": "digest", "host": "id"}
"""Tables to whose rows those of others belong, and hosts to those of the first three, with what names them there."""

USUAL = {"why": "", "unproven": 0}
FLEET = conclusions.FLEET
MAX_NAMES = 200


@dataclass
class Copy:
    """`rows` of the copy; table → prints of the rows that were lost; the `hosts` of these; `torn`: tables with damaged pages."""

    place: str
    rows: int = 0
    lost: dict[str, set[int]] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    torn: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        some = [*sound.counted(self.lost), *(f"rows of {table} that cannot be read" for table in self.torn)]
        of = f" (of {text.plain(nodeset.fold(self.hosts), MAX_NAMES)})" if self.hosts else ""
        return f"{self.place}: {text.count(self.rows, 'row')}; lost: {', '.join(some) or 'nothing'}{of}"


def repair(place: str, to: str) -> Copy:
    """Copy what can be read to a new file (empty `to`: next to the history), or to an empty database. Raise HistoryError."""
    if not to and postgres.is_url(place):
        raise PlaceError("--repair: give the new FILE, or the URL of an empty database")
    path = Path(place)
    to = to or str(path.with_name(f"{path.stem}.repaired{path.suffix or '.db'}"))
    old = Database(place, make=False, damaged=True)
    try:
        if postgres.is_url(to):
            return _filled(old, to)
        if Path(to).exists():
            raise PlaceError(f"{text.plain(to)}: is there already: --repair NEW writes to another file")
        partial = Path(to).with_name(f".{Path(to).name}.partial")
        try:
            partial.unlink(missing_ok=True)
            done = _filled(old, str(partial))
            partial.rename(to)
        finally:
            partial.unlink(missing_ok=True)
        done.place = text.plain(to)
        return done
    finally:
        old.close()


def _filled(old: Database, place: str) -> Copy:
    new = Database(place)
    try:
        if new.one("SELECT id FROM host") is not None:
            raise PlaceError(f"{new.name}: has a history already: --repair needs an empty database")
        return _Copying(old, new).copied()
    finally:
        new.close()


class _Copying:
    def __init__(self, old: Database, new: Database) -> None:
        self._old, self._new, self._done = old, new, Copy(new.name)
        self._names: dict[str, dict[Any, str]] = {table: {} for table in KEYS}
        self._latest = self._future()

    def copied(self) -> Copy:
        """Copy all tables: those first to whose rows others belong."""
        there = self._old.tables()
        wanted = TABLES if "conclusion" in there else OF_FIRST_EDITION
        self._keep("unjudged", ["digest", "content"], [conclusions.LOST_ROW])
        for table in sorted(wanted, key=lambda name: (name == "host", name) if name in KEYS else (True, f"~{name}")):
            if table not in there or not self._copy(table):
                self._done.torn.append(table)
            self._done.rows += self._new.one(f"SELECT count(*) FROM {table}")  # noqa: S608
        if not self._done.rows:
            raise HistoryError(f"{self._old.name}: nothing of it can be read: restore a backup, or begin a new one")
        with self._new.writing():
            if wanted is OF_FIRST_EDITION:
                self._new.change(MIGRATIONS[1][-1])
            self._new.renumber(NUMBERED)
        return self._done

    def _copy(self, table: str) -> bool:
        """Copy a table; return whether all of it could be read. Past a damaged page it is read from its end, too."""
        columns, there = self._new.columns(table), self._old.columns(table)
        if any(name not in there and name not in USUAL and not sound.is_optional(name) for name in columns):
            return False
        some = [name for name in columns if name in there]
        read = f"SELECT {', '.join(some)} FROM {table}"  # noqa: S608
        for number, way in enumerate(("", " ORDER BY 1, 2", " ORDER BY 1 DESC, 2 DESC")):
            try:
                for rows in self._old.batches(read + way):
                    self._keep(table, columns, [dict(zip(some, row, strict=True)) for row in rows])
            except HistoryError:
                continue
            return not number
        return False

    def _keep(self, table: str, columns: list[str], rows: list[dict[str, Any]]) -> None:
        kept = []
        for of in rows:
            row = tuple([of.get(name, USUAL.get(name)) for name in columns])
            now = self._sound(table, columns, row)
            if now != row:
                self._done.lost.setdefault(table, set()).add(hash(repr(row)))
                self._done.hosts |= {self._names["host"].get(of.get("host", FLEET), "")} - {""}
            if now:
                kept.append(now)
                if table in self._names:
                    self._names[table][now[columns.index(KEYS[table])]] = str(of.get("name"))
        with self._new.writing():
            self._new.add(f"{table} ({', '.join(columns)})", kept)

    def _sound(self, table: str, columns: list[str], row: Row) -> Row:
        """Return a row without what is damaged of it; empty if it is nothing then."""
        cured = sound.cured(columns, row)
        of = dict(zip(columns, cured, strict=True))
        if table == "host" and None not in (of["id"], of["name"]):
            return tuple({**of, **self._host(of)}.values())
        if cured != row or not self._belongs(table, of):
            return ()
        try:
            _CHECKED.get(table, bool)(of)
            fixed = _FIXED[table](of, self._names) if table in _FIXED else {}
        except sound.PROBLEMS:
            return ()
        return tuple({**of, **fixed}.values()) if fixed else row

    def _host(self, of: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a host has of facts and series that are there."""
        facts, carry = self._names["fact"], None
        with suppress(*sound.PROBLEMS):
            carry = {
                series: added
                for series, added in writer.of_carry(of["carry"]).items()
                if series in self._names["series"]
            }
        return {
            "settings": of["settings"] and b"".join(each for each in reader.cut(of["settings"]) if each in facts),
            "parts": of["parts"] if of["parts"] in facts else None,
            "carry": writer.as_carry(carry or {}),
        }

    def _belongs(self, table: str, of: Mapping[str, Any]) -> bool:
        """Return whether a row belongs to a host and a series that are there, and a look is not of the future."""
        series = of.get("fact" if table == "change" else "series", judging.LOOKED)
        return (
            (of.get("host", FLEET) == FLEET or of["host"] in self._names["host"])
            and (series == judging.LOOKED or series in self._names["series"])
            and (table != "look" or of["at"] <= self._latest)
        )

    def _future(self) -> int:
        """Return the time after which looks are damaged: tomorrow, unless most are later."""
        tomorrow = int(time.time()) + DAY
        later = self._old.one("SELECT count(*) FROM look WHERE at > ?", (tomorrow,)) or 0
        return MAX_TIME if 2 * later > (self._old.one("SELECT count(*) FROM look") or 0) else tomorrow


Names = Mapping[str, Mapping[Any, str]]


def _check_fact(of: Mapping[str, Any]) -> None:
    sound.leaves(of["leaves"])
    if fact_print(of["name"], of["leaves"]) != of["digest"]:
        raise ValueError("another fact")


def _look(of: Mapping[str, Any], known: Names) -> dict[str, Any]:
    values = unpack(of["packed"])
    left = sorted(values.keys() & known["series"].keys())
    return {} if len(left) == len(values) else {"packed": pack(left, [values[each] for each in left])}


def _examination(of: Mapping[str, Any], known: Names) -> dict[str, Any]:
    return {} if not of["unjudged"] or of["unjudged"] in known["unjudged"] else {"unjudged": conclusions.LOST_PRINT}


_FIXED: Mapping[str, Callable[[Mapping[str, Any], Names], dict[str, Any]]] = {
    "look": _look,
    "examination": _examination,
}
"""Table → what changes of a row, some of whose content belongs to what is lost. Raises one of sound.PROBLEMS for damaged content."""

_CHECKED: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "fact": _check_fact,
    "change": lambda of: [sound.json_of(of[name]) for name in ("before", "after")],
    "event": lambda of: of["kind"] != judging.TREND or judging.trend_of(of["text"]),
    "conclusion": lambda of: not of["content"] or conclusions.conclusion_of(of["content"]),
    "unjudged": lambda of: conclusions.reasons_of(of["content"]),
}
"""Table → what raises one of sound.PROBLEMS for damaged content."""
