"""The output of `nodetune` without a command: the last audit, apply, verify and guard status, and the next command."""

import calendar
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nodetune.api.model import SEVERITIES
from nodetune.cli import last_results
from nodetune.foundation import nodeset, paths, text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, TOO_SLOW
from nodetune.remediation.runs import record
from nodetune.remediation.runs.files import RunError
from nodetune.remediation.runs.record import DONE, RUNNING, Run
from nodetune.report.text.runs import described

CHANGES = ("apply", "rollback", "provision")
DAY = 86400
ENDED = {
    INCOMPLETE: "incomplete",
    END_STATE_MISSED: "end state not reached",
    TOO_SLOW: "a figure is below target or became worse",
}
"""The meaning of a run's exit code."""

MAX_LENGTH = 160

Known = dict[str, Any]
"""The record of one command; empty if there is none."""


def lines(now: float | None = None) -> list[tuple[str, str]]:
    """Return (label, what is known of it), the next command last. Empty where nothing is recorded."""
    moment = time.time() if now is None else now
    found = {name: last_results.read(name) for name in ("audit", "verify", "guard status")}
    run = _last_run()
    if not run and not any(found.values()):
        return []
    told: list[tuple[str, str]] = []
    for name, say in (("audit", _audit), ("verify", _verify), ("guard status", _guard)):
        about = found[name]
        told.append((name.partition(" ")[0], _line(about, say(about), moment) if about else "never"))
    told.insert(1, _run(run, moment) if run else ("apply", "never"))
    return [*told, ("next", _next(found["audit"], found["verify"], found["guard status"], run, moment))]


def _last_run() -> Run | None:
    """Return the last run that changed hosts, if there is one that can be read."""
    try:
        return next((each for each in record.listing() if described(each).get("command") in CHANGES), None)
    except (OSError, RuntimeError):  # a folder that cannot be read, or no home at all
        return None


def _line(about: Known, what: str, now: float) -> str:
    asked = text.plain(about.get("asked") or "this host", 60)
    return text.plain(f"{text.span(max(0.0, now - about['time']))} ago, {asked}: {what}", MAX_LENGTH)


def _number(about: Known, name: str) -> int:
    found = about.get(name)
    return found if isinstance(found, int) else 0


def _lost(about: Known) -> str:
    lost = _number(about, "lost")
    return f", {lost} not reached" if lost else ""


def _none_reached(about: Known) -> bool:
    return 0 < _number(about, "hosts") <= _number(about, "lost")


def _audit(about: Known) -> str:
    failing = about.get("failing")
    counts = failing if isinstance(failing, dict) else {}
    found = [f"{counts[each]} {each}" for each in reversed(SEVERITIES) if counts.get(each)]
    worst = f"; worst: {about['worst']} on {about.get('worst_host')}" if found and about.get("worst") else ""
    noun = "finding" if [each.split()[0] for each in found] == ["1"] else "findings"
    findings = f"{', '.join(found)} {noun}" if found else "no findings"
    hosts = f"{text.count(_number(about, 'hosts'), 'host')}{_lost(about)}"
    return hosts if _none_reached(about) else f"{hosts}: {findings}{worst}"


def _verify(about: Known) -> str:
    hosts = f"{text.count(_number(about, 'hosts'), 'host')}{_lost(about)}"
    return hosts if _none_reached(about) else f"{hosts}, {_number(about, 'short') or 'none'} below target"


def _guard(about: Known) -> str:
    modes = about.get("modes")
    counts = modes if isinstance(modes, dict) else {}
    drained = _number(about, "drained")
    parts = [text.count(_number(about, "nodes"), "node"), *(f"{number} {mode}" for mode, number in counts.items())]
    return ", ".join([*parts, f"{drained} drained by the guard"]) + _lost(about)


def _run(run: Run, now: float) -> tuple[str, str]:
    about = described(run)
    ended = about.get("exit")
    state = ENDED.get(ended, f"exit code {ended}") if about["state"] == DONE and ended else str(about["state"])
    where = text.plain(nodeset.fold(about.get("hosts") or []), 40)
    counts = ", ".join(f"{number} {outcome}" for outcome, number in _outcomes(run).items())
    ago = text.span(max(0.0, now - _started(run)))
    told = f"{ago} ago, {where}: {state}{f', {counts}' if counts else ''} ({run.id})"
    return text.plain(about["command"]), text.plain(told, MAX_LENGTH)


def _outcomes(run: Run) -> Mapping[str, int]:
    """Return the number of steps of a run with each outcome."""
    try:
        rows = run.document("outcomes")
    except RunError:
        return {}
    return Counter(str(row.get("outcome")) for row in rows if isinstance(row, dict)) if isinstance(rows, list) else {}


def _started(run: Run) -> float:
    return float(calendar.timegm(time.strptime(run.id[:15], "%Y%m%d-%H%M%S")))


def _next(audit: Known, verify: Known, guard: Known, run: Run | None, now: float) -> str:
    """Return the one command that matters most now."""
    return next(_proposed(audit, verify, guard, run, now))


def _proposed(audit: Known, verify: Known, guard: Known, run: Run | None, now: float) -> Iterator[str]:
    again = _typed("audit", audit)
    about = described(run) if run else {}
    late = run is not None and (not audit or audit["time"] < _started(run))
    if run and late and (about["state"] not in (DONE, RUNNING) or about.get("exit")):
        yield f"nodetune runs show {run.id}"
    if _number(guard, "drained"):
        yield f"{_typed('guard resume', guard)} --dry-run"
    if not audit or late or now - audit["time"] > DAY:
        yield again
    if audit.get("failing") and audit.get("fixable"):
        yield _typed("plan", audit)
    if audit.get("failing") and audit.get("worst"):
        yield f"nodetune explain {text.plain(audit['worst'])} {text.plain(audit.get('judged') or '')}".rstrip()
    if _number(verify, "short"):
        yield _typed("verify", verify)
    yield again


def _typed(command: str, about: Known) -> str:
    """Return a command with the options of the last time, for the folder in which they were given."""
    asked, folder = (
        text.plain(about.get(name) or "", last_results.MAX_NAME_CHARACTERS) for name in ("asked", "folder")
    )
    there = f"cd {shlex.quote(folder)} && " if asked and folder and folder != str(Path.cwd()) else ""
    return f"{there}nodetune {command} {asked}".rstrip()


def print_overview(say: Callable[[str], None]) -> bool:
    """Print the overview; return whether there is something to say."""
    found = lines()
    for label, told in found:
        say(f"{label:<9} {paths.as_typed(told)}")
    return bool(found)
