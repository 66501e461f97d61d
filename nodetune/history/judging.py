"""Judges the day: how much each counter of faults has grown, and how far each GPU is above the others of its host.

The figures of a day are kept for four weeks: they say what is usual.
"""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nodetune import __version__
from nodetune.api.conclusion import Examination, Examined, Judged
from nodetune.api.conclusion_json import MAX_TIME
from nodetune.foundation import by_key
from nodetune.history import conclusions, kinds, reader, resets, sound, trends
from nodetune.history.connection import Database
from nodetune.history.names import SeriesNames
from nodetune.history.packing import unpack
from nodetune.history.points import DAY
from nodetune.history.sound import Row
from nodetune.history.thinning import LARGEST
from nodetune.history.trends import LeafSeries, Trend
from nodetune.statistics.thresholds import MAX_GAP_DAYS, PAST, WARM_DEGREES

PAST_DAYS = PAST.stop

TREND = "trend"
"""The kind of the events that are trends."""

MAX_DAYS = 1 << 20
"""Days until a limit, of a trend that is kept."""

LOOKED = 0
"""The series of a host that was looked at."""

Figures = dict[tuple[int, str], int]
"""(host, judged series) → its figure of a day."""


def day_judged(db: Database, before: int | None = None) -> int:
    """Return the last day that was judged, up to a day; 0 for none."""
    most = "SELECT max(day) AS last FROM figure WHERE day < ?"
    last = int(db.one(most, (MAX_TIME // DAY,)) or 0)
    if before is None or last <= before:
        return last
    db.lose("figure", last)  # of the future: nothing would be judged until then
    return int(db.one(most, (before + 1,)) or 0)


def judge(db: Database, now: int) -> list[Trend]:
    """Judge the last 24 hours, keep the figures, and return the trends. In a transaction."""
    day, names = now // DAY, SeriesNames(db)
    judged = {number: judged_name(name) for number, name in names.names.items() if kinds.of(name) in kinds.JUDGED}
    hosts = {number: rest for number, *rest in db.rows("SELECT id, name, cohort, parts FROM host")}
    figures, looked = _figures(db, now, judged, hosts.keys())
    names.number({name for _, name in figures})
    begun = _exchanged(db, names, now)
    past = _Past(db, day, names.names, begun)
    peers = _Peers(db, {host: (hosts[host][1], hosts[host][2]) for host in looked})
    alike = Counter(hosts[host][1] for host in looked)
    groups = by_key(((hosts[host][1], trends.family(name)), (host, name)) for host, name in sorted(figures))
    found = []
    warm = by_key((host, trends.family(name)) for host, name in figures)
    heat = {trends.family(name) for name in judged.values() if trends.is_heat(name)}
    doubtful: dict[int, set[str]] = {host: heat.difference(warm.get(host, ())) for host in looked}
    rows: list[Row] = [(day, host, LOOKED, 1, 0, 0) for host in sorted(looked)]
    for (cohort, family), members in groups.items():
        parts = [past.part(host, hosts[host][0], name, figures[host, name]) for host, name in members]
        verdicts = trends.judge(parts, max(len(parts), peers.of(cohort, family.partition("/")[0])), alike[cohort])
        found += [each for each in (trends.trend(verdict, day) for verdict in verdicts) if each]
        for (host, name), each in zip(members, verdicts, strict=True):
            if each.hit:
                doubtful[host].add(trends.subject(name) or trends.family(name))
        rows += [
            (day, host, names.ids[name], each.part.figure, min(each.usual, LARGEST), int(each.hit))
            for (host, name), each in zip(members, verdicts, strict=True)
        ]
    db.change("DELETE FROM figure WHERE day = ? OR day < ?", (day, day - PAST_DAYS))
    db.add("figure", rows)
    at = day * DAY
    db.change("DELETE FROM event WHERE at = ? AND kind = ?", (at, TREND))
    numbers = {hosts[host][0]: host for host in looked}
    db.add("event", [(numbers[each.host], at, TREND, each.name, json.dumps(asdict(each))) for each in found])
    conclusions.keep(db, _concluded(found, {hosts[host][0]: names for host, names in doubtful.items()}, now))
    return found


def _concluded(found: Sequence[Trend], doubtful: Mapping[str, set[str]], now: int) -> Examined:
    """Return what the trends conclude. `doubtful`: host → parts, or figures, that are proven neither good nor bad today.

    That is what grew too much today, but not yet on enough days, and heat of hosts that were not warm.
    """
    looked = [
        Examination(trends.SOURCE, host, now, __version__, (Judged(trends.FAULT, unread=frozenset(parts)),))
        for host, parts in sorted(doubtful.items())
    ]
    return Examined(tuple(trends.conclusion(each, now) for each in found), tuple(looked))


def trends_of(db: Database, day: int) -> list[Trend]:
    """Return the trends of a day that was judged, without those of parts that were exchanged since."""
    known = db.rows("SELECT host, text FROM event WHERE at = ? AND kind = ?", (day * DAY, TREND))
    begun = _exchanged(db, SeriesNames(db), day * DAY) if known else {}
    found = [(host, db.made("event", trend_of, text)) for host, text in known]
    there = (
        each
        for host, each in found
        if each and max(begun.get((host, part), 0) for part in resets.parts_of(each.name)) < day
    )
    return sorted(there, key=lambda each: (each.host, each.name))


def trend_of(text: str) -> Trend:
    """Return a trend as it was kept. Raise one of sound.PROBLEMS."""
    found = Trend(**sound.json_of(text))
    sound.numbers((found.figure, found.usual, found.hits, found.peers, found.day, found.limit or 0))
    known = (found.less, found.days or 0.0, found.doubles or 0.0)
    if (
        set(map(type, known)) - {int, float}
        or not 0 <= max(known) < MAX_DAYS
        or {type(found.host), type(found.name)} != {str}
    ):
        raise TypeError("not a trend")
    return found


def judged_name(leaf: str) -> str:
    """Return the series that a leaf is judged in: the links of a GPU are summed up."""
    above, _, last = leaf.rpartition("/")
    return above if last.isdecimal() and above.count("/") >= 2 else leaf


def _figures(db: Database, now: int, judged: Mapping[int, str], hosts: Container[int]) -> tuple[Figures, set[int]]:
    """Return the figures of the last 24 hours, and the hosts that have any."""
    found: Figures = defaultdict(int)
    looked = set()
    counters = {series: name for series, name in judged.items() if kinds.of(name) != "heat"}
    for host, ((begun, old), (at, packed)) in reader.apart(db, now, DAY).items():
        if host not in hosts or at <= now - DAY or at - begun > MAX_GAP_DAYS * DAY:
            continue
        looked.add(host)
        values, before = db.made("look", unpack, packed), db.made("look", unpack, old)
        if values is None or before is None:
            continue
        for series in counters.keys() & values.keys():
            step = values[series] - before.get(series, 0)
            if step > 0:
                found[host, counters[series]] += min(round(step * DAY / (at - begun)), LARGEST)
    found |= _heat(db, now, {series: name for series, name in judged.items() if series not in counters}, looked)
    return {key: figure for key, figure in found.items() if figure or trends.is_heat(key[1])}, looked


def _heat(db: Database, now: int, judged: Mapping[int, str], looked: set[int]) -> Figures:
    """Return how far each GPU was above the others of its host while these were warm: the median of the day's looks."""
    if not judged:
        return {}
    above: dict[tuple[int, str], list[float]] = defaultdict(list)
    for host, _, values in _looks(db, now, looked):
        for named in by_key(
            (name.partition("/")[0], (name, values.get(series, 0))) for series, name in judged.items()
        ).values():
            warm = {name: value for name, value in named if value}
            middle = statistics.median(warm.values()) if len(warm) > 2 else 0
            if middle >= WARM_DEGREES:
                for name, value in warm.items():
                    above[host, name].append(value - middle)
    return {key: round(statistics.median(each)) for key, each in above.items()}


def _looks(db: Database, now: int, looked: set[int]) -> Iterator[tuple[int, int, dict[int, int]]]:
    """Yield (host, time, values) of a look in each 2 hours: enough for a median."""
    last: dict[int, int] = {}
    for host, at, packed in db.rows(
        "SELECT host, at, packed FROM look WHERE at > ? AND at <= ? ORDER BY host, at", (now - DAY, now)
    ):
        if host in looked and at - last.get(host, 0) >= DAY // 12:
            last[host] = at
            yield host, at, reader.unpacked(db, packed)


def _exchanged(db: Database, names: SeriesNames, now: int) -> dict[tuple[int, str], int]:
    """Return (host, part or family) → the day on which the part was exchanged."""
    serials = [number for number, name in names.names.items() if resets.is_serial(name)]
    rows = db.rows_of(
        "SELECT host, fact, at, before, after FROM change WHERE fact IN (?) AND at > ? ORDER BY host, fact, at",
        serials,
        (now - (PAST_DAYS + 1) * DAY,),
    )
    found: dict[tuple[int, str], int] = {}
    known: dict[tuple[int, int], Any] = {}
    for host, fact, at, (was, after) in reader.moved(db, rows):
        before = known.get((host, fact)) if was in resets.NONE else was
        known[host, fact] = before if after in resets.NONE else after
        for part in resets.exchanged(names.names[fact]) if resets.is_exchange(before, after) else ():
            found[host, part] = max(at // DAY, found.get((host, part), 0))
    return found


class _Past:
    """The figures of the days before: what is usual for each part, and on which days it had too much."""

    def __init__(self, db: Database, day: int, names: Mapping[int, str], begun: Mapping[tuple[int, str], int]) -> None:
        self._day, self._begun = day, begun
        self._figures: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
        self._hits: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
        self._looked: dict[int, set[int]] = defaultdict(set)
        known = "SELECT day, host, series, figure, hit FROM figure WHERE day >= ? AND day < ?"
        for of, host, series, figure, hit in db.rows(known, (day - PAST_DAYS, day)):
            if series == LOOKED:
                self._looked[host].add(day - of)
                continue
            if series not in names:
                db.lose("series", series)
                continue
            self._figures[host, names[series]][day - of] = figure
            if hit:
                self._hits[host, names[series]][day - of] = figure

    def part(self, host: int, called: str, name: str, figure: int) -> LeafSeries:
        """Return a part with its past, which an exchange begins again."""
        longest = self._day - max(self._begun.get((host, part), 0) for part in resets.parts_of(name))
        days = [ago for ago in self._looked[host] if ago < longest]
        of, hits = self._figures[host, name], self._hits[host, name]
        return LeafSeries(
            called,
            name,
            figure,
            {ago: of.get(ago, 0) for ago in days if ago in of or not trends.is_heat(name)},
            {ago: hits[ago] for ago in days if ago in hits},
        )


class _Peers:
    """How many parts of a fact the hosts of a kind have: those whose numbers are zero are not in their looks."""

    def __init__(self, db: Database, hosts: Mapping[int, tuple[str | None, bytes | None]]) -> None:
        kinds_of_hosts = Counter((cohort, bytes(parts)) for cohort, parts in hosts.values() if parts)
        found = reader.facts(db, {parts for _, parts in kinds_of_hosts})
        facts = {digest: Counter(part.partition("/")[0] for part in leaves) for digest, _, leaves in found}
        self._counts: Counter[tuple[str | None, str]] = Counter()
        for (cohort, parts), hosts_of in kinds_of_hosts.items():
            for fact, count in facts.get(parts, {}).items():
                self._counts[cohort, fact] += count * hosts_of

    def of(self, cohort: str | None, fact: str) -> int:
        """Return how many peers there are, with the part itself."""
        return self._counts[cohort, fact]
