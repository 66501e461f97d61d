"""Keeps what is wrong, what was looked at, and what was done. A conclusion stays until an examination proves it good."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nodetune.api import conclusion_json
from nodetune.api.conclusion import UNKNOWN, Action, Conclusion, Examination, Examined
from nodetune.api.device import Device
from nodetune.foundation import by_key
from nodetune.history import reader, resets, sound
from nodetune.history.closing import Last, Open, Settled, settle
from nodetune.history.connection import Database
from nodetune.history.names import ids_of
from nodetune.history.points import Drain, Spell
from nodetune.history.sound import Row

OWN = ("trend", "episodes")
"""Sources that judge the history itself."""

_LOST = {"*": "the history lost what was not judged: its database is damaged"}
"""The reasons of an examination whose own are damaged."""

LOST_PRINT = b"lost"
LOST_ROW = {"digest": LOST_PRINT, "content": json.dumps(_LOST)}

FLEET = 0
"""The number of the host of a conclusion about no host in particular."""

_OF_HOST = (
    "SELECT CASE c.host WHEN 0 THEN '' ELSE h.name END AS name, c.id, c.source, c.fault, c.about, c.place, c.part, c.since,"
    " c.edition, c.unproven, c.state, c.severity, c.mark, c.content FROM conclusion c LEFT JOIN host h ON h.id = c.host"
    " WHERE c.gone IS NULL"
)
_WHERE = " AND c.host IN (?)", " AND c.id IN (SELECT conclusion FROM conclusion_host WHERE host IN (?))"


def keep(db: Database, found: Examined) -> Settled:
    """Keep what a source concludes, and close what its examinations prove good. Return what changed."""
    names = dict.fromkeys(each.host for each in found.examinations if each.host)
    names |= dict.fromkeys(host for each in found.conclusions for host in each.hosts)
    ids = ids_of(db, names)
    sources = {each.source for each in found.examinations} | {each.source for each in found.conclusions}
    rows = [row for row in _rows_of(db, [FLEET, *ids.values()]) if row.source in sources or row.place]
    same, others = _unchanged(rows, found.conclusions, {each.source: each.edition for each in found.examinations})
    found = replace(found, conclusions=tuple(_with_parts(db, others, ids)))
    known = _opened(db, (row for row in rows if row.id not in same))
    done = settle(known, found, _last(db, ids), _exchanged(db, ids, known), _missing(db, ids, known))
    db.add(
        "conclusion (host, source, fault, about, place, part, since, edition, state, severity, mark, content)",
        [_row(each, ids) for each in done.new],
    )
    _add_others(db, done.new, ids)
    db.many(
        "UPDATE conclusion SET place = ?, part = ?, edition = ?, unproven = ?, state = ?, severity = ?, mark = ?,"
        " content = ? WHERE id = ?",
        [
            (
                *_place(each.conclusion),
                each.edition,
                each.unproven,
                each.conclusion.state,
                each.conclusion.severity,
                _mark(each.conclusion),
                _content(each.conclusion),
                each.id,
            )
            for each in done.changed
        ],
    )
    db.many(
        "UPDATE conclusion SET gone = ?, why = ? WHERE id = ?",
        [(each.at, each.why, each.known.id) for each in done.closed],
    )
    _keep_examinations(db, found.examinations, ids)
    return done


def act(db: Database, actions: Iterable[Action]) -> None:
    """Keep what was done; what is known already stays as it is."""
    every = list(actions)
    ids = ids_of(db, dict.fromkeys(each.host for each in every))
    db.add(
        "action (host, at, kind, device, who, run, reason)",
        [(ids[each.host], each.at, each.kind, each.device, each.by, each.run, each.reason) for each in every],
    )  # fmt: skip


def actions(db: Database, hosts: Sequence[str] = (), since: int = 0) -> list[Action]:
    """Return what was done to hosts (to all without names), the oldest first."""
    statement = "SELECT a.kind, h.name, a.at, a.who, a.reason, a.run, a.device FROM action a LEFT JOIN host h ON h.id = a.host WHERE {} a.at >= ?"
    rows = (
        db.rows_of(statement.format("h.name IN (?) AND"), hosts, (since,))
        if hosts
        else db.rows(statement.format(""), (since,))
    )
    return sorted((Action(*row) for row in rows), key=lambda action: (action.at, action.host, action.kind))


def open_now(db: Database, hosts: Sequence[str] = ()) -> list[Open]:
    """Return what is open on hosts, or on all and on the fleet without names."""
    if not hosts:
        return _opened(db, (_Row(*row) for row in db.rows(_OF_HOST)))
    return _opened(db, _rows_of(db, ids_of(db, hosts, make=False).values()))


def examined(db: Database, hosts: Sequence[str] = ()) -> list[tuple[str, str, int, Mapping[str, str]]]:
    """Return (source, host, time of the last examination, fault → why it could not be judged), of these hosts or of all."""
    known = db.rows("SELECT digest, content FROM unjudged")
    sets = {digest: db.made("unjudged", reasons_of, content) or _LOST for digest, content in known} | {b"": {}}
    statement = "SELECT e.source, h.name, e.at, e.unjudged FROM examination e LEFT JOIN host h ON h.id = e.host WHERE"
    rows = [*db.rows_of(f"{statement} h.name IN (?)", hosts)] if hosts else db.rows(f"{statement} e.host <> 0")
    db.lose("unjudged", *({digest or b"" for *_, digest in rows} - sets.keys()))
    return [(source, name, at, sets.get(digest or b"", _LOST)) for source, name, at, digest in rows]


def own(db: Database) -> Examined:
    """Return what the history itself concludes. What it proved good is closed there, so its examinations prove nothing to others."""
    found = (each.conclusion for each in open_now(db) if each.conclusion.source in OWN)
    rows = db.rows(
        "SELECT e.source, h.name, e.at, e.edition FROM examination e JOIN host h ON h.id = e.host"
        " WHERE e.source IN (?, ?) ORDER BY h.name",
        OWN,
    )
    return Examined(tuple(found), tuple(Examination(*row) for row in rows))


def since(db: Database, hosts: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
    """Return host → check → the earliest time of those of its devices that still have the finding of an audit."""
    names = {number: name for name, number in ids_of(db, hosts, make=False).items()}
    found: dict[str, dict[str, int]] = {}
    rows = db.rows_of(
        "SELECT host, fault, since FROM conclusion WHERE gone IS NULL AND host IN (?) AND source = ? AND state = ?",
        names, ("audit", "open"),
    )  # fmt: skip
    for host, fault, begun in rows:
        of = found.setdefault(names[host], {})
        of[fault] = min(begun, of.get(fault, begun))
    return found


def episodes(db: Database, host: str, after: int) -> list[Drain]:
    """Return how often each finding of a host that was there after this time came, the most frequent first."""
    rows = db.rows(
        "SELECT c.fault, c.place, c.since, c.gone FROM conclusion c JOIN host h ON h.id = c.host WHERE h.name = ? AND c.state = ?"
        " ORDER BY c.since, c.fault, c.place",
        (host, "open"),
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
    """Return from when to when any device had a finding, the oldest first. `spells`: in the order of their beginning."""
    came = [spells[0]]
    for each in spells[1:]:
        last = came[-1]
        if last.gone is not None and each.since > last.gone:
            came.append(each)
        elif last.gone is not None and (each.gone is None or each.gone > last.gone):
            came[-1] = replace(each, since=last.since)
    return came


def _with_parts(db: Database, found: Sequence[Conclusion], ids: Mapping[str, int]) -> Iterator[Conclusion]:
    """Yield conclusions about GPUs with the serial numbers that the facts of their host have: a measurement knows their index alone."""
    known: dict[str, dict[str, Any]] = {}
    for each in found:
        device = each.device
        if device is None or device.kind != "gpu" or device.part or len(each.hosts) != 1:
            yield each
            continue
        host = each.hosts[0]
        if host not in known:
            known[host] = reader.settings(db, ids[host], ("gpu.serial", "gpu.uuid"))
        serial, uuid = (str(known[host].get(f"gpu.{fact}/{device.name}") or "") for fact in ("serial", "uuid"))
        yield replace(each, device=replace(device, serial=serial, uuid=uuid))


class _Row(NamedTuple):
    """An open conclusion as the database has it; `content` is JSON. `host` is empty for the fleet."""

    host: str
    id: int
    source: str
    fault: str
    about: str
    place: str
    part: str
    since: int
    edition: str
    unproven: int
    state: str
    severity: str
    mark: str
    content: str


def _rows_of(db: Database, ids: Iterable[int]) -> list[_Row]:
    numbers = list(ids)
    rows = [_Row(*row) for where in _WHERE for row in db.rows_of(_OF_HOST + where, numbers)]
    return list({row.id: row for row in rows}.values())


def _opened(db: Database, rows: Iterable[_Row]) -> list[Open]:
    found = (db.made("conclusion", _open, row) for row in rows)
    return [each for each in found if each]


def _unchanged(
    rows: Iterable[_Row], found: Iterable[Conclusion], editions: Mapping[str, str]
) -> tuple[set[int], list[Conclusion]]:
    """Return the ids of the rows that are as they were, and the other conclusions: of most hosts nothing has changed."""
    known = {(row.host, row.source, row.fault, row.about, row.place): row for row in rows}
    same: set[int] = set()
    others: list[Conclusion] = []
    for each in found:
        if each.state == UNKNOWN:
            continue
        device = each.device
        place, part = (device.place, device.part) if device else ("", "")
        row = known.get((each.hosts[0], each.source, each.fault, each.about, place)) if len(each.hosts) == 1 else None
        if (
            row is not None
            and row.mark == _mark(each)
            and (row.state, row.severity, row.unproven) == (each.state, each.severity, 0)
            and row.edition == editions.get(each.source)
            and part in ("", row.part)
        ):
            same.add(row.id)
        else:
            others.append(each)
    return same, others


def _open(row: _Row) -> Open:
    if not row.content or row.content == "{}":  # of an earlier edition, which kept names alone
        device = Device(row.place) if row.place else None
        hosts = (row.host,) if row.host else ()
        older = Conclusion(row.fault, row.source, hosts, "info", "", row.since, device, row.about)
        return Open(older, row.since, row.edition, row.unproven, row.id)
    return Open(conclusion_of(row.content), row.since, row.edition, row.unproven, row.id)


def conclusion_of(content: str) -> Conclusion:
    """Return a conclusion as it was kept. Raise one of sound.PROBLEMS."""
    return conclusion_json.from_data(sound.json_of(content))


def _row(each: Open, ids: Mapping[str, int]) -> Row:
    about = each.conclusion
    host = ids[about.hosts[0]] if about.hosts else FLEET
    named = (host, about.source, about.fault, about.about, *_place(about))
    return (*named, each.since, each.edition, about.state, about.severity, _mark(about), _content(about))


def reasons_of(content: str) -> dict[str, str]:
    """Return fault → why it could not be judged. Raise one of sound.PROBLEMS."""
    return sound.texts(sound.json_of(content))


def _place(each: Conclusion) -> tuple[str, str]:
    return (each.device.place, each.device.part) if each.device else ("", "")


def _mark(each: Conclusion) -> str:
    """Return the text by which a change of a conclusion is seen."""
    return f"{each.statement}\n{each.who}\n{each.explained_by}\n{each.reason}"


def _content(each: Conclusion) -> str:
    return json.dumps(conclusion_json.data(each), sort_keys=True, default=str)


def _add_others(db: Database, new: Sequence[Open], ids: Mapping[str, int]) -> None:
    """Keep the further hosts of conclusions that have several, such as paths."""
    for each in new:
        if len(each.conclusion.hosts) > 1:
            about = _row(each, ids)
            number = db.one(
                "SELECT max(id) FROM conclusion WHERE host = ? AND source = ? AND fault = ? AND about = ? AND place = ?",
                about[:5],
            )
            db.add("conclusion_host", [(number, ids[host]) for host in each.conclusion.hosts[1:]])


def _last(db: Database, ids: Mapping[str, int]) -> Last:
    names = {number: name for name, number in ids.items()}
    rows = db.rows_of("SELECT source, host, at FROM examination WHERE host IN (?)", [FLEET, *names])
    return {(source, names.get(host, "")): at for source, host, at in rows}


def _exchanged(db: Database, ids: Mapping[str, int], known: Sequence[Open]) -> set[tuple[str, str]]:
    """Return (host, part) of those parts of open conclusions that another part has replaced, by the facts of their host."""
    parts = {each.conclusion.device.part for each in known if each.conclusion.device} - {""}
    serials = [number for number, name in db.rows("SELECT id, name FROM series") if resets.is_serial(name)]
    names = {number: name for name, number in ids.items()}
    statement = "SELECT c.host, s.name, c.at, c.before, c.after FROM change c JOIN series s ON s.id = c.fact WHERE c.fact IN (?)"
    rows = (row for row in db.rows_of(statement, serials if parts else ()) if row[0] in names)
    changes = (
        ((host, leaf.partition("/")[0]), (at, leaf, *values)) for host, leaf, at, values in reader.moved(db, rows)
    )
    return {(names[host], part) for (host, _), of in by_key(changes).items() for part in resets.replaced(of) & parts}


def _missing(db: Database, ids: Mapping[str, int], known: Sequence[Open]) -> set[tuple[str, str]]:
    """Return (host, part) of the GPUs with an open conclusion that their host does not have now, by its facts."""
    of_hosts = by_key(
        (host, each.conclusion.device)
        for each in known
        if each.conclusion.device and each.conclusion.device.kind == "gpu" and each.conclusion.device.part
        for host in each.conclusion.hosts
        if host in ids
    )
    found = set()
    for host, devices in of_hosts.items():
        settings = reader.settings(db, ids[host], ("gpu.serial", "gpu.uuid"))
        for device in devices:
            fact = "gpu.serial/" if device.serial else "gpu.uuid/"
            here = {str(value) for leaf, value in settings.items() if leaf.startswith(fact) and value}
            if here and device.part not in here:
                found.add((host, device.part))
    return found


def _keep_examinations(db: Database, looked: Sequence[Examination], ids: Mapping[str, int]) -> None:
    """Keep the last examination of each source and host. Reasons that many hosts share are kept once."""
    rows, sets = [], {}
    for same in by_key(((each.host, each.source), each) for each in looked).values():
        last = max(same, key=lambda each: each.at)
        unjudged = {fault: why for each in same if each.at == last.at for fault, why in each.unjudged.items()}
        content = json.dumps(unjudged, sort_keys=True) if unjudged else ""
        digest = hashlib.blake2b(content.encode(), digest_size=12).digest() if content else b""
        if content:
            sets[digest] = content
        rows.append((ids[last.host] if last.host else FLEET, last.source, last.at, last.edition, digest))
    db.add("unjudged", list(sets.items()))
    db.many(
        "INSERT INTO examination VALUES (?, ?, ?, ?, ?) ON CONFLICT (host, source) DO UPDATE SET at = excluded.at,"
        " edition = excluded.edition, unjudged = excluded.unjudged WHERE excluded.at >= examination.at",
        rows,
    )
