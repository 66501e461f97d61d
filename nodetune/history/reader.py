"""Reads the numbers and changes of hosts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nodetune.api.conclusion_json import MAX_TIME
from nodetune.history import kinds, sound
from nodetune.history.connection import Database
from nodetune.history.packing import unpack
from nodetune.history.points import DAY, LeafChange, Point, Rate
from nodetune.history.sound import Row
from nodetune.history.structure import PRINT

MAX_DAYS = 400

Seen = tuple[int, bytes]
"""The time and the packed numbers of a look."""


def number_of(db: Database, table: str, name: str) -> int | None:
    """Return the number of a host or a series by its name."""
    found: int | None = db.one(f"SELECT id FROM {table} WHERE name = ?", (name,))  # noqa: S608
    return found


def leaves(db: Database, host: str, pattern: str) -> list[str]:
    """Return the leaves that have numbers in the last look, or changes, and whose names begin so."""
    own = number_of(db, "host", host)
    packed = db.one("SELECT packed FROM look WHERE host = ? ORDER BY at DESC LIMIT 1", (own,))
    numbers = set(unpacked(db, packed) if packed else ())
    numbers |= {row[0] for row in db.rows("SELECT DISTINCT fact FROM change WHERE host = ?", (own,))}
    names: dict[int, str] = dict(db.rows("SELECT id, name FROM series"))
    db.lose("series", *(numbers - names.keys()))
    return sorted(names[number] for number in numbers & names.keys() if names[number].startswith(pattern))


def unpacked(db: Database, packed: bytes) -> dict[int, int]:
    """Return series → value of a look; nothing for a damaged one."""
    return db.made("look", unpack, packed) or {}


def facts(db: Database, prints: Iterable[bytes]) -> Iterator[tuple[bytes, str, dict[str, Any]]]:
    """Yield (print, name, leaves) of facts that are known."""
    wanted, count = set(prints), 0
    for digest, name, text in db.rows_of("SELECT digest, name, leaves FROM fact WHERE digest IN (?)", wanted):
        count += 1
        if (leaves := db.made("fact", sound.leaves, text)) is not None:
            yield bytes(digest), name, leaves
    if count < len(wanted):
        db.lose("fact", wanted)


def cut(prints: bytes) -> list[bytes]:
    """Return the prints of facts that a host has."""
    return [prints[at : at + PRINT] for at in range(0, len(prints), PRINT)]


def settings(db: Database, host: int, names: Sequence[str]) -> dict[str, Any]:
    """Return the leaves of the settings of some facts of a host, as last read."""
    prints = bytes(db.one("SELECT settings FROM host WHERE id = ?", (host,)) or b"")
    known = facts(db, cut(prints))
    return {leaf: value for _, name, leaves in known if name in names for leaf, value in leaves.items()}


def last_looks(db: Database) -> list[tuple[str, int]]:
    """Return each host with the time of its last look."""
    found = db.rows(
        "SELECT h.name, max(l.at) AS at FROM look l LEFT JOIN host h ON h.id = l.host GROUP BY l.host, h.name ORDER BY h.name"
    )
    return [(name, at) for name, at in found]


def series_of(db: Database, host: str, leaves: Sequence[str], since: int) -> list[tuple[str, list[Point]]]:
    """Return leaf → a point a day of the thinned past, then one a look. Leaves without numbers have none."""
    own = number_of(db, "host", host)
    ids = {leaf: number for number, leaf in db.rows("SELECT id, name FROM series") if kinds.of(leaf) in kinds.NUMBERS}
    looks = [
        (at, values)
        for at, packed in db.rows("SELECT at, packed FROM look WHERE host = ? AND at >= ? ORDER BY at", (own, since))
        if (values := db.made("look", unpack, packed)) is not None
    ]
    newest = looks[-1][0] // DAY if looks else MAX_TIME // DAY
    last = db.one("SELECT max(day) AS last FROM day WHERE day <= ?", (newest,)) or 0
    for edge in ("min", "max"):  # what is no time is before or after all that is one
        db.rows(f"SELECT {edge}(at) AS last FROM look WHERE host = ?", (own,))  # noqa: S608
        db.rows(f"SELECT {edge}(day) AS last FROM day")  # noqa: S608
    days = range(max(since // DAY, last - MAX_DAYS), last + 1)
    about = "SELECT day, low, high, grown FROM day WHERE day IN (?) AND series = ? AND host = ? ORDER BY day"
    found = []
    for leaf in leaves:
        number = ids.get(leaf)
        old = db.rows_of(about, days, (number, own)) if number is not None and last else ()
        points = [Point(day * DAY, low, high, grown) for day, low, high, grown in old]
        if number is not None:
            points += [Point(at, values.get(number, 0), values.get(number, 0)) for at, values in looks]
        if leaf.startswith(kinds.FIGURES):  # zero: not measured yet
            points = [Point(each.at, each.low or each.high, each.high, each.grown) for each in points if each.high]
        found.append((leaf, points))
    return found


def changes(db: Database, host: str, since: int) -> list[LeafChange]:
    """Return what changed on a host, and resets, the oldest first."""
    own = number_of(db, "host", host)
    rows = db.rows(
        "SELECT c.at, s.name, c.before, c.after FROM change c LEFT JOIN series s ON s.id = c.fact"
        " WHERE c.host = ? AND c.at >= ?",
        (own, since),
    )
    found = [LeafChange(at, leaf, *values) for at, leaf, values in moved(db, rows)]
    events = db.rows(
        "SELECT at, kind, subject, text FROM event WHERE host = ? AND at >= ? AND kind <> 'trend'", (own, since)
    )
    found += [LeafChange(at, kind, None, f"{subject}: {text}") for at, kind, subject, text in events]
    return sorted(found, key=lambda each: (each.at, each.leaf))


def moved(db: Database, rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    """Yield rows that end in two texts, with a pair of the values of these in place of both."""
    for *row, before, after in rows:
        if values := db.made("change", lambda *texts: tuple(map(sound.json_of, texts)), before, after):
            yield *row, values


def newest(db: Database, at: int) -> dict[int, Seen]:
    """Return host → its last look up to this time."""
    return _looks_at(db, "max(at) FROM look WHERE host = h.id AND at <= ?", at)


def _looks_at(db: Database, chosen: str, at: int) -> dict[int, Seen]:
    """Return host → the look at the time that a subquery about its looks chooses."""
    found = db.rows(
        f"SELECT l.host, l.at, l.packed FROM host h JOIN look l ON l.host = h.id AND l.at = (SELECT {chosen})",  # noqa: S608
        (at,),
    )
    return {host: (seen, packed) for host, seen, packed in found}


def apart(db: Database, now: int, span: int) -> dict[int, tuple[Seen, Seen]]:
    """Return host → its newest look up to now, and before it the one that is nearest to a span earlier, at least half of one.

    Audits are not punctual: the look of yesterday may be some minutes less than a day ago.
    """
    earlier = newest(db, now - span)
    later = _looks_at(db, "min(at) FROM look WHERE host = h.id AND at > ?", now - span)
    found = {}
    for host, last in newest(db, now).items():
        ages = {last[0] - each[0]: each for each in (later.get(host), earlier.get(host)) if each}
        near = min((age for age in ages if age >= span // 2), key=lambda age: abs(age - span), default=None)
        if near is not None:
            found[host] = ages[near], last
    return found


def rates(db: Database, now: int, fact: str, span: int) -> list[Rate]:
    """Return the growth a day of each counter whose name begins so, from the newest look and one about a span before."""
    names = {number: name for number, name in db.rows("SELECT id, name FROM series") if name.startswith(fact)}
    wanted = {number for number, name in names.items() if kinds.of(name) in kinds.COUNTERS}
    hosts = {number: name for number, name in db.rows("SELECT id, name FROM host")}  # noqa: C416
    found = []
    for host, ((begun, old), (at, packed)) in sorted(apart(db, now, span).items()):
        values, before = db.made("look", unpack, packed), db.made("look", unpack, old)
        if values is None or before is None or host not in hosts:
            continue
        found += [
            Rate(hosts[host], names[series], (values[series] - before.get(series, 0)) * DAY / (at - begun))
            for series in sorted(wanted & values.keys())
        ]
    return found
