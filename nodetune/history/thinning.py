"""Thins the past: looks of whole days older than a week become a row a day and series that moved."""

import itertools
from collections.abc import Iterator, Sequence

from nodetune.history.connection import Database
from nodetune.history.packing import unpack
from nodetune.history.points import DAY
from nodetune.history.sound import Row

DAYS = 7
LARGEST = (1 << 63) - 1
"""Counters of 64 bits that are carried on are larger than what a database takes."""


def thin(db: Database, now: int) -> int:
    """Thin each host in a transaction of its own. The last look stays: the next day's first step. Return the new rows."""
    before, count = (now // DAY - DAYS) * DAY, 0
    for (host,) in db.rows("SELECT DISTINCT host FROM look WHERE at < ? ORDER BY host", (before,)):
        with db.writing():
            count += _thin_host(db, host, before)
    return count


def _thin_host(db: Database, host: int, before: int) -> int:
    days: dict[int, list[dict[int, int]]] = {}
    read: list[Row] = []
    looks = db.rows("SELECT at, packed FROM look WHERE host = ? AND at < ? ORDER BY at", (host, before))
    if len(looks) < 2:
        return 0
    for at, packed in looks:
        if (values := db.made("look", unpack, packed)) is not None:
            days.setdefault(at // DAY, []).append(values)
            read.append((host, at))
    rows: list[Row] = []
    last: list[dict[int, int]] = []
    for day, of_day in days.items():
        rows += _extremes(day, host, last + of_day)
        last = of_day[-1:]
    db.add("day", rows)
    db.many("DELETE FROM look WHERE host = ? AND at = ?", read[:-1])
    return len(rows)


def _extremes(day: int, host: int, looks: Sequence[dict[int, int]]) -> Iterator[Row]:
    for series in sorted(set().union(*looks)):
        seen = [min(look.get(series, 0), LARGEST) for look in looks]
        steps = [after - before for before, after in itertools.pairwise(seen)]
        if any(steps):
            yield day, series, host, min(seen), max(seen), seen[-1] - seen[0], max(steps)
