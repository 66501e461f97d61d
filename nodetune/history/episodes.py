"""Hosts and parts that break more often than their like, and faults that reboots did not cure.

An episode begins when a host is drained, or when a fault is found there that has to be repaired; what begins within a day of
another is the same. What begins on many hosts within an hour has a common cause, and counts for none of them.
"""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import MEASURED, OPEN, REPAIR, Conclusion, Examination, Examined, Judged, Next
from nodetune.api.device import Device
from nodetune.foundation import by_key, text
from nodetune.history import sound
from nodetune.history.closing import Open
from nodetune.history.connection import Database
from nodetune.history.points import DAY
from nodetune.history.resets import BOOT_ID
from nodetune.statistics import rates
from nodetune.statistics.distributions import binomial_tail
from nodetune.statistics.thresholds import (
    EPISODE_DAYS,
    MAX_CHANCE_OF_COMMON_CAUSE,
    MAX_CHANCE_OF_LEMON,
    MIN_EPISODES,
    MIN_REBOOTS,
)

SOURCE, OFTEN, LASTING = "episodes", "host-often-broken", "fault-survives-reboots"
HOUR = 3600
MAX_SHOWN = 12
SERIOUS = ("critical", "high")
SERIALS = "gpu.serial"


@dataclass(frozen=True)
class Event:
    """Something that began on a host: a drain or a fault, of a part if that is known."""

    host: str
    at: int
    what: str
    part: str = ""
    place: str = ""


@dataclass(frozen=True)
class Lemon:
    """A host, or a part of it, with its episodes, the usual number of similar hosts, and the chance of its number."""

    host: str
    episodes: tuple[Event, ...]
    usual: float
    chance: float
    part: str = ""


def lemons(
    events: Iterable[Event], hosts: Mapping[str, str], parts: int = 0, days: float = EPISODE_DAYS, alone: bool = True
) -> list[Lemon]:
    """Return the hosts that broke too often. `hosts`: all of them, each with its model; `parts`: how many GPUs they have.

    A part is named in place of its host if it has three quarters of the episodes. `alone`: leave out common causes.
    """
    every = list(events)
    own = separate(every, days) if alone else every
    of_hosts = by_key((each.host, each) for each in own if each.host in hosts)
    counted = {host: _episodes(of_hosts.get(host, ())) for host in hosts}
    found = [
        Lemon(host, counted[host], usual, chance)
        for host, usual, chance in _too_many({host: (hosts[host], len(each)) for host, each in counted.items()}, days)
    ]
    return [_of_part(each, parts, counted) for each in found]


def separate(events: Sequence[Event], days: float) -> list[Event]:
    """Return the events without those of a common cause: far more hosts within an hour than their rate explains."""
    ordered = sorted(events, key=lambda each: each.at)
    share = HOUR / (days * DAY)
    common: set[int] = set()
    first = 0
    for last, event in enumerate(ordered):
        while event.at - ordered[first].at > HOUR:
            first += 1
        there = {each.host for each in ordered[first : last + 1]}
        if len(there) > 2 and binomial_tail(len(there), len(ordered), share) / share < MAX_CHANCE_OF_COMMON_CAUSE:
            common.update(range(first, last + 1))
    return [each for number, each in enumerate(ordered) if number not in common]


def _episodes(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the first event of each episode."""
    found: list[Event] = []
    last = -DAY
    for each in sorted(events, key=lambda each: each.at):
        if each.at - last >= DAY:
            found.append(each)
        last = each.at
    return tuple(found)


def _too_many(counts: Mapping[str, tuple[str, int]], days: float) -> Iterator[tuple[str, float, float]]:
    """Yield (name, usual number, chance) of those with too many, the worst first. One that is named does not count for the others."""
    left = dict(counts)
    while left:
        rows = [rates.Episodes(name, like, count, days) for name, (like, count) in left.items()]
        named = [
            (row, chance)
            for row, chance in zip(rows, rates.p_values(rows), strict=True)
            if chance <= MAX_CHANCE_OF_LEMON and row.count >= MIN_EPISODES
        ]
        for row, chance in sorted(named, key=lambda each: each[1]):
            others = [each.count for each in rows if each.like == row.like and each.host != row.host]
            yield row.host, sum(others) / max(1, len(others)), chance
            del left[row.host]
        if not named:
            return


def _of_part(lemon: Lemon, parts: int, counted: Mapping[str, Sequence[Event]]) -> Lemon:
    """Return the part that has most of the episodes of its host, if it is more than its like explain by itself."""
    of_parts = by_key((each.part, each) for each in lemon.episodes if each.part)
    part, own = max(of_parts.items(), key=lambda each: len(each[1]), default=("", []))
    if not own or 4 * len(own) < 3 * len(lemon.episodes) or parts < 2:
        return lemon
    others = sum(1 for episodes in counted.values() for each in episodes if each.part not in ("", part))
    chance = parts * rates.p_higher(len(own), EPISODE_DAYS, others, EPISODE_DAYS * (parts - 1))
    return replace(lemon, part=part, chance=chance) if chance <= MAX_CHANCE_OF_LEMON else lemon


def concluded(db: Database, now: int, known: Sequence[Open], last: Mapping[str, int]) -> Examined:
    """Return which hosts break too often, and which open faults reboots did not cure. `last`: host → its last audit."""
    rows = db.rows("SELECT name, cohort FROM host")
    hosts = {name: cohort or "" for name, cohort in rows}
    since = now - EPISODE_DAYS * DAY
    found = lemons(_events(db, since), hosts, _parts(db))
    lasting = _lasting(db, known, last, now)
    looked = tuple(
        Examination(SOURCE, host, now, __version__, (Judged(OFTEN), Judged(LASTING, unread=_open_places(known, host))))
        for host in sorted(hosts)
    )
    return Examined((*(_conclusion(each, now) for each in found), *lasting), looked)


def _events(db: Database, since: int) -> Iterator[Event]:
    yield from (
        Event(host, at, "drained: " + text.plain(reason, 80))
        for host, at, reason in db.rows(
            "SELECT h.name, a.at, a.reason FROM action a LEFT JOIN host h ON h.id = a.host WHERE a.at >= ? AND a.kind = ?",
            (since, "drained"),
        )
    )
    for host, at, fault, place, part, content in db.rows(
        "SELECT h.name, c.since, c.fault, c.place, c.part, c.content FROM conclusion c JOIN host h ON h.id = c.host"
        " WHERE c.since >= ? AND c.source <> ? AND c.state = ? AND c.severity IN (?, ?)",
        (since, SOURCE, OPEN, *SERIOUS),
    ):
        if content and db.made("conclusion", _who, content) == REPAIR:
            yield Event(host, at, fault, part, place)


def _who(content: str) -> Any:
    return sound.json_of(content).get("who")


def _parts(db: Database) -> int:
    """Return how many GPUs the history knows by their serial number."""
    rows = db.rows("SELECT leaves FROM fact WHERE name = ?", (SERIALS,))
    facts = (db.made("fact", sound.leaves, text) or {} for (text,) in rows)
    return len({str(value) for leaves in facts for value in leaves.values() if value})


def _conclusion(each: Lemon, now: int) -> Conclusion:
    row = faults.row(OFTEN)
    shown = [f"{_date(one.at)} {one.what} {one.place}".rstrip() for one in each.episodes[-MAX_SHOWN:]]
    place = next((one.place for one in each.episodes if one.part == each.part), "") if each.part else ""
    return Conclusion(
        OFTEN,
        SOURCE,
        (each.host,),
        row.severity,
        f"{each.host}{f' {place}' if place else ''}: {len(each.episodes)} episodes in {EPISODE_DAYS} days; its like have {each.usual:.2g}",
        now,
        Device(place, serial=each.part) if each.part else None,
        sure=MEASURED,
        chance=each.chance,
        observed=len(each.episodes),
        wanted=round(each.usual, 2),
        evidence=tuple(shown),
        who=row.who,
        next=Next("history", (each.host,)),
    )


def _lasting(db: Database, known: Sequence[Open], last: Mapping[str, int], now: int) -> Iterator[Conclusion]:
    """Yield the faults to repair that are still there after two reboots: each was seen again since the last one."""
    boots = boots_of(db)
    row = faults.row(LASTING)
    for each in known:
        about = each.conclusion
        if about.who != REPAIR or about.source != "audit" or about.severity not in SERIOUS or not about.counts:
            continue
        host = "".join(about.hosts[:1])
        later = [at for at in boots.get(host, ()) if at > each.since]
        if len(later) >= MIN_REBOOTS and not each.unproven and last.get(host, 0) >= max(later):
            yield Conclusion(
                LASTING,
                SOURCE,
                about.hosts,
                row.severity,
                f"{len(later)} reboots did not cure {about.fault}: it is hardware",
                now,
                about.device,
                about.fault,
                evidence=(about.statement, *(f"rebooted {_date(at)}" for at in later[-MAX_SHOWN:])),
                who=row.who,
                next=Next("report", (host,)),
            )


def boots_of(db: Database, since: int = 0) -> dict[str, list[int]]:
    """Return host → the times at which it was first seen after a boot."""
    found: dict[str, list[int]] = defaultdict(list)
    for host, at in db.rows(
        "SELECT h.name, c.at FROM change c JOIN series s ON s.id = c.fact JOIN host h ON h.id = c.host"
        " WHERE s.name = ? AND c.at >= ? ORDER BY c.at",
        (BOOT_ID, since),
    ):
        found[host].append(at)
    return found


def _open_places(known: Sequence[Open], host: str) -> frozenset[str]:
    """Return the open faults of a host that were not judged lately: whether reboots cured them is unknown."""
    return frozenset(each.conclusion.fault for each in known if each.unproven and host in each.conclusion.hosts)


def _date(at: int) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).date().isoformat()
