"""Find earlier runs that have ended and remain: they changed hosts, and no later rollback undid that."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nodetune.foundation import by_key
from nodetune.remediation.runs import record
from nodetune.remediation.runs.files import DamageError, RunError
from nodetune.remediation.runs.journal_copy import JournalCopy
from nodetune.remediation.runs.record import DONE, INTERRUPTED, Run

ROLLBACK = "rollback"
BEGIN, END = "Begin", "End"
"""The first and the last task of what changes a host."""
NAMES = ("path", "unit", "mount_point", "name", "setting", "link", "device")
"""Members of a change that say what it acts on, the most telling first."""

MAX_EARLIER_RUNS = 20


def over(own: Run) -> dict[str, str]:
    """Return host → runs of this machine that are over, ended or not: their locks may be taken over."""
    others = (run for run in record.listing(own.folder.parent) if run.id != own.id)
    past = by_key((host, run.id) for run in others for host in _hosts_if_over(run))
    return {host: " ".join(ids[:MAX_EARLIER_RUNS]) for host, ids in past.items()}


def _hosts_if_over(run: Run) -> list[str]:
    try:
        return run.hosts if run.state() in (DONE, INTERRUPTED) else []
    except RunError:  # a folder that tells nothing holds no lock that we may break
        return []


def last(root: Path | None) -> tuple[Run, list[str]]:
    """Return the last run that is not rolled back yet, with the hosts. Raise RunError, also if it changed nothing."""
    for run, hosts in _left(record.listing(root)):
        _require_sound((each for each in record.listing(root) if each.id > run.id), f"nodetune rollback {run.id}")
        hosts_changed = changed(run, run.about["hosts"])
        if not hosts_changed:
            older = before(run, root)
            more = f"; the last one that changed something: nodetune rollback {older.id}" if older else ""
            raise RunError(f"the last run, {run.id}, changed nothing: nothing to roll back{more}")
        if left := [host for host in hosts if host in hosts_changed]:
            return run, left
    _require_sound(record.listing(root), "nodetune runs")
    raise RunError("nothing to roll back: no recorded run has changed anything that remains (nodetune runs)")


def _require_sound(runs: Iterable[Run], instead: str) -> None:
    """Raise DamageError if the record of a run cannot be read: it may have changed hosts, or rolled a run back."""
    for run in runs:
        if (problem := _unreadable(run)) and any(run.folder.iterdir()):  # else it ended before it began
            raise DamageError(f"{problem}: what that run did is unknown; restore it, or leave it so: {instead}")


def _unreadable(run: Run) -> str:
    """Return why a record cannot be read, or ""."""
    try:
        run.state()
    except RunError as problem:
        return str(problem)
    return ""


def before(run: Run, root: Path | None) -> Run | None:
    """Return the newest remaining run that is older than this one."""
    return next((older for older, _ in standing(record.listing(root)) if older.id < run.id), None)


def on(hosts: Iterable[str], root: Path | None) -> list[tuple[Run, list[str]]]:
    """Return all remaining runs on any of these hosts, newest first, each with its hosts."""
    wanted = set(hosts)
    _require_sound(record.listing(root), "nodetune rollback RUN for each of the others (nodetune runs)")
    found = ((run, [host for host in where if host in wanted]) for run, where in standing(record.listing(root)))
    return [(run, where) for run, where in found if where]


def standing(newest_first: Iterable[Run]) -> Iterator[tuple[Run, list[str]]]:
    """Yield each remaining run with its hosts. Skip unreadable records."""
    for run, hosts in _left(newest_first):
        with contextlib.suppress(RunError):
            if left := changed(run, hosts):
                yield run, left


def _left(newest_first: Iterable[Run]) -> Iterator[tuple[Run, list[str]]]:
    """Yield each run, rollbacks apart, with the hosts where no rollback undid it. Skip unreadable records."""
    undone, standing_again = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for run in newest_first:
        rolled_back = undone[run.id]
        with contextlib.suppress(RunError):
            if run.about.get("command") == ROLLBACK:
                of, hosts = _of(run), set(_undone(run)) - rolled_back
                undone[of] |= hosts - standing_again[of]
                if _makes_stand(run):
                    standing_again[_of(Run(run.folder.with_name(of)))] |= hosts
            elif left := [host for host in run.about["hosts"] if host not in rolled_back]:
                yield run, left


def changes_anything(run: str, root: Path | None) -> bool:
    """Return whether a run changed something on a host, or may have."""
    found = record.find(run, root)
    return bool(changed(found, found.hosts))


def labels(run: Run, host: str) -> list[str]:
    """Return what a run changed on a host, as its journal names it."""
    changes = [entry["change"] for entry in run.entries(host) if isinstance(entry.get("change"), dict)]
    return list(dict.fromkeys(_label(change) for change in changes))


def _label(change: Mapping[str, Any]) -> str:
    return next((str(change[name]) for name in NAMES if change.get(name)), str(change.get("change")))


def _of(rollback: Run) -> str:
    options = rollback.about.get("options")
    return str(options.get("of")) if isinstance(options, dict) else ""


def _undone(rollback: Run) -> list[str]:
    """Return the hosts where a rollback undid everything, or where it restored the changes of a run, if only partly."""
    partly = changed(rollback, rollback.about["hosts"]) if _makes_stand(rollback) else []
    recorded = rollback.about.get("undone")
    return [*map(str, recorded), *partly] if isinstance(recorded, list) else []


def _makes_stand(run: Run) -> bool:
    """Return whether a run rolls back a rollback, so that the run of that one remains."""
    of = Run(run.folder.with_name(_of(run)))
    try:
        return of.about.get("command") == ROLLBACK and not _makes_stand(of)
    except RunError:
        return False


def changed(run: Run, hosts: Iterable[str]) -> list[str]:
    """Return on which of the hosts a run changed something. Of one that was killed or lost not every entry arrived."""
    lost = hosts if run.state() != DONE else _lost(run)
    return [host for host in hosts if host in lost or _says_changed(run.journal(host))]


def _says_changed(journal: JournalCopy) -> bool:
    return bool(journal.damage) or any("change" in entry for entry in journal.entries)


def _lost(run: Run) -> set[str]:
    """Return the hosts where a run began and did not end, or may have."""
    open_calls = Counter[str]()
    try:
        events = run.events()
    except RunError:
        return set(run.hosts)
    for event in events:
        if event.get("status") == "ok":
            open_calls[str(event.get("host"))] += {BEGIN: 1, END: -1}.get(str(event.get("task")), 0)
    return {host for host, count in open_calls.items() if count > 0}
