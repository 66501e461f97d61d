"""Since when a finding has been there. It is kept until its check passes: unknown or not run proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from nodetune.api.model import Finding, HostResult
from nodetune.foundation import by_key
from nodetune.history.connection import Database, Row
from nodetune.history.points import Drain, Spell

_OPEN = "SELECT host, finding, subject, since FROM verdict WHERE gone IS NULL AND host IN (?)"


def keep(db: Database, results: Iterable[HostResult], looked: Mapping[str, int]) -> None:
    """Keep what failed and what passes on these hosts. `looked`: host → the time of its facts; older ones say nothing."""
    judged = {each.host: each for each in results if each.state == "ok"}
    ids = _ids(db, judged)
    newest: dict[int, int] = dict(
        db.rows_of("SELECT host, max(at) FROM look WHERE host IN (?) GROUP BY host", ids.values())
    )
    there = by_key((row[0], row[1:]) for row in db.rows_of(_OPEN, ids.values()))
    new: list[Row] = []
    gone: list[Row] = []
    for host, result in judged.items():
        number, at = ids.get(host, 0), looked.get(host, 0)
        if at < newest.get(number, 1):  # also those whose facts have no time: no look of them was kept
            continue
        failing = {(found.check, subject) for found in result.failing() for subject in _subjects(found)}
        known = {(finding, subject): since for finding, subject, since in there.get(number, ())}
        over = {finding for finding, _ in known.keys() - failing}
        seen = result.findings if over else ()
        proven = {
            found.check: found.unread for found in seen if found.check in over and found.status in ("pass", "fail")
        }
        new += [(number, finding, subject, at, None) for finding, subject in sorted(failing - known.keys())]
        gone += [
            (max(at, since), number, finding, subject, since)
            for (finding, subject), since in known.items()
            if finding in proven and (finding, subject) not in failing and subject not in proven[finding]
        ]
    db.add("verdict", new)
    db.many("UPDATE verdict SET gone = ? WHERE host = ? AND finding = ? AND subject = ? AND since = ?", gone)


def _subjects(found: Finding) -> Iterable[str]:
    return found.subjects or ("",)


def _ids(db: Database, hosts: Iterable[str]) -> dict[str, int]:
    return dict(db.rows_of("SELECT name, id FROM host WHERE name IN (?)", hosts))


def since(db: Database, hosts: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
    """Return host → check → the earliest time of those of its subjects that are still there."""
    names = {number: name for name, number in _ids(db, hosts).items()}
    found: dict[str, dict[str, int]] = {}
    for host, finding, _, begun in db.rows_of(_OPEN, names):
        of = found.setdefault(names[host], {})
        of[finding] = min(begun, of.get(finding, begun))
    return found


def repeated(db: Database, host: str, after: int) -> list[Drain]:
    """Return how often each finding of a host that was there after this time came, the most frequent first."""
    rows = db.rows(
        "SELECT v.finding, v.subject, v.since, v.gone FROM verdict v JOIN host h ON h.id = v.host WHERE h.name = ?"
        " ORDER BY v.since, v.finding, v.subject",
        (host,),
    )
    spells = by_key((row[0], Spell(*row)) for row in rows)
    return sorted(_drains(spells.values(), after), key=lambda each: (-each.times, each.finding))


def _drains(found: Iterable[list[Spell]], after: int) -> Iterator[Drain]:
    for spells in found:
        came = [each for each in _joined(spells) if each.gone is None or each.gone >= after]
        if not came:
            continue
        between = (came[-1].since - came[0].since) / (len(came) - 1) if len(came) > 1 else None
        yield Drain(came[0].finding, len(came), between, came[-1])


def _joined(spells: Sequence[Spell]) -> list[Spell]:
    """Return from when to when any subject had a finding, the oldest first. `spells`: in the order of their beginning."""
    came = [spells[0]]
    for each in spells[1:]:
        last = came[-1]
        if last.gone is not None and each.since > last.gone:
            came.append(each)
        elif last.gone is not None and (each.gone is None or each.gone > last.gone):
            came[-1] = replace(each, since=last.since)
    return came
