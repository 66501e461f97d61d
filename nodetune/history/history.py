"""The history: what other rooms use. Nothing else knows that it is a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

from nodetune.api.conclusion import Action, Examined
from nodetune.foundation.stage_output import Show, Silent
from nodetune.history import conclusions, episodes, judging, reader, thinning
from nodetune.history.closing import Open, Settled
from nodetune.history.connection import Database
from nodetune.history.points import DAY, Drain, LeafChange, Point, Rate
from nodetune.history.snapshot import Snapshot
from nodetune.history.trends import Trend
from nodetune.history.writer import Recorded, Writer

BATCH = 500
"""Looks in a transaction: others wait that long."""


class History:
    """The history in a file, or in a PostgreSQL database by its URL. Its methods raise HistoryError.

    `show` gets a warning for a file that others may read, and for damaged rows, which count for nothing.
    """

    def __init__(self, place: str, show: Show | None = None, *, make: bool = True) -> None:
        self._db, self._show = Database(place, make=make), show or Silent()
        for note in self._db.notes:
            self._show.warn(note)
        self._writer: Writer | None = None
        self._waiting: list[Snapshot] = []
        self.recorded = Recorded()

    def __enter__(self) -> History:  # noqa: PYI034  (Python 3.10 has no Self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def close(self) -> None:
        """Close it; what waits is not written."""
        if self._db.damage:
            self._show.warn(self._db.damage)
        self._db.close()

    @property
    def is_damaged(self) -> bool:
        """Whether damaged rows were seen."""
        return bool(self._db.lost)

    def take(self, look: Snapshot) -> None:
        """Keep a look with the next batch."""
        self._waiting.append(look)
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            done = self.record(waiting)
            for name, count in vars(done).items():
                setattr(self.recorded, name, getattr(self.recorded, name) + count)

    def record(self, looks: Sequence[Snapshot]) -> Recorded:
        """Write a look at each host: all, or after an error none."""
        try:
            with self._db.writing():
                self._writer = self._writer or Writer(self._db)
                return self._writer.write(looks)
        except BaseException:
            self._writer = None  # it knows numbers that were not kept
            raise

    def conclude(self, found: Examined) -> Settled:
        """Keep what a source concludes about hosts, and close what it proves good. Return what changed."""
        with self._db.writing():
            return conclusions.keep(self._db, found)

    def act(self, actions: Iterable[Action]) -> None:
        """Keep what was done to hosts."""
        with self._db.writing():
            conclusions.act(self._db, actions)

    def actions(self, hosts: Sequence[str] = (), since: float = 0) -> list[Action]:
        """Return what was done to hosts, or to all, the oldest first."""
        done = conclusions.actions(self._db, hosts, int(since))
        boots = episodes.boots_of(self._db, int(since))
        done += [Action("rebooted", host, at) for host in hosts or boots for at in boots.get(host, ())]
        return sorted(done, key=lambda action: (action.at, action.host, action.kind))

    def open(self, hosts: Sequence[str] = ()) -> list[Open]:
        """Return what is open on hosts, or on all."""
        return conclusions.open_now(self._db, hosts)

    def examined(self, hosts: Sequence[str] = ()) -> list[tuple[str, str, int, Mapping[str, str]]]:
        """Return (source, host, time of the last examination, fault → why it could not be judged), of hosts or of all."""
        return conclusions.examined(self._db, hosts)

    def own_conclusions(self) -> Examined:
        """Return the open conclusions about trends and episodes, and when each host was judged."""
        return conclusions.own(self._db)

    def since(self, hosts: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
        """Return host → check → the time since when the finding of an audit has been there."""
        return conclusions.since(self._db, hosts)

    def drains(self, host: str, since: float = 0) -> list[Drain]:
        """Return how often each finding of a host that was there after this time came and went."""
        return conclusions.episodes(self._db, host, int(since))

    def hosts(self) -> list[str]:
        """Return the names of all hosts."""
        return [row[0] for row in self._db.rows("SELECT name FROM host ORDER BY name")]

    def leaves(self, host: str, pattern: str = "") -> list[str]:
        """Return the leaves of a host with numbers or changes whose names begin so."""
        return reader.leaves(self._db, host, pattern)

    def series(self, host: str, leaf: str, since: float = 0) -> list[Point]:
        """Return a point a day of the thinned past, then one a look."""
        return self.series_of(host, [leaf], since)[0][1]

    def series_of(self, host: str, leaves: Sequence[str], since: float = 0) -> list[tuple[str, list[Point]]]:
        """Return `series` of several leaves of a host, whose looks are read once."""
        return reader.series_of(self._db, host, leaves, int(since))

    def last_looks(self) -> list[tuple[str, int]]:
        """Return each host with the time of its last look."""
        return reader.last_looks(self._db)

    def changes(self, host: str, since: float = 0) -> list[LeafChange]:
        """Return what changed on a host, and what made its counters start again, the oldest first."""
        return reader.changes(self._db, host, int(since))

    def rates(self, now: float, fact: str, span: int = DAY) -> list[Rate]:
        """Return the growth a day of the counters whose names begin so, over this span of seconds."""
        return reader.rates(self._db, int(now), fact, span)

    def judge(self, now: float) -> list[Trend]:
        """Judge the last 24 hours, and return what grew too much and did on several days."""
        with self._db.writing():
            return judging.judge(self._db, int(now))

    def judge_episodes(self, now: float) -> Settled:
        """Conclude which hosts and parts broke too often, and which open faults reboots did not cure."""
        with self._db.writing():
            last = {host: at for source, host, at, _ in conclusions.examined(self._db) if source == "audit"}
            known = conclusions.open_now(self._db)
            return conclusions.keep(self._db, episodes.concluded(self._db, int(now), known, last))

    def daily(self, now: float) -> list[Trend]:
        """Judge and thin if that was not done today, and return the trends of today."""
        today = int(now // DAY)
        if judging.day_judged(self._db, today + 1) < today:
            self.judge(now)
            self.judge_episodes(now)
            self.thin(now)
        return judging.trends_of(self._db, today)

    def trends(self) -> list[Trend]:
        """Return the trends of the last day that was judged."""
        return judging.trends_of(self._db, judging.day_judged(self._db))

    def thin(self, now: float) -> int:
        """Turn the looks of whole days that are older than a week into a row a day and series. Return the rows."""
        return thinning.thin(self._db, int(now))
