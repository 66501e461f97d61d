"""Find earlier runs that have ended and remain: they changed hosts, and no later rollback undid that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nodetune.remediation.runs import record
from nodetune.remediation.runs.files import RunError
from nodetune.remediation.runs.record import DONE, INTERRUPTED, Run

ROLLBACK = "rollback"
NAMES = ("path", "unit", "mount_point", "name", "setting", "link", "device")
"""Members of a change that say what it acts on, the most telling first."""

MOST_OVER = 20


def over(own: Run) -> dict[str, str]:
    """Return host → runs of this machine that are over, ended or not: their locks may be taken over."""
    past: dict[str, list[str]] = {}
    for run in record.listing(own.folder.parent):
        for host in _hosts_if_over(run) if run.id != own.id else ():
            past.setdefault(host, []).append(run.id)
    return {host: " ".join(ids[:MOST_OVER]) for host, ids in past.items()}


def _hosts_if_over(run: Run) -> list[str]:
    try:
        return run.hosts if run.state() in (DONE, INTERRUPTED) else []
    except RunError:  # a folder that tells nothing holds no lock that we may break
        return []


def last(root: Path | None) -> tuple[Run, list[str]]:
    """Return the newest remaining run and its hosts. Raise RunError."""
    found = next(standing(record.listing(root)), None)
    if found is None:
        raise RunError("nothing to roll back: no recorded run has changed anything that remains (nodetune runs)")
    return found


def on(hosts: Iterable[str], root: Path | None) -> list[tuple[Run, list[str]]]:
    """Return all remaining runs on any of these hosts, newest first, each with its hosts."""
    wanted = set(hosts)
    found = ((run, [host for host in where if host in wanted]) for run, where in standing(record.listing(root)))
    return [(run, where) for run, where in found if where]


def standing(newest_first: Iterable[Run]) -> Iterator[tuple[Run, list[str]]]:
    """Yield each remaining run with its hosts. Skip unreadable records."""
    undone: dict[str, set[str]] = {}
    for run in newest_first:
        rolled_back = undone.get(run.id, set())
        try:
            if run.about.get("command") == ROLLBACK:
                undone.setdefault(_of(run), set()).update(set(_undone(run)) - rolled_back)
                continue
            left = [host for host in run.about["hosts"] if host not in rolled_back and _changed(run, host)]
        except RunError:
            continue
        if left:
            yield run, left


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
    """Return the hosts where a rollback undid everything. Before 0.2.0, only the exit code shows this."""
    recorded = rollback.about.get("undone")
    if isinstance(recorded, list):
        return [str(host) for host in recorded]
    return list(rollback.about["hosts"]) if rollback.about.get("exit") == 0 else []


def _changed(run: Run, host: str) -> bool:
    """Return whether a run changed something on a host. Of a run that was killed not every entry arrived."""
    return run.state() != DONE or any("change" in entry for entry in run.entries(host))
