"""Recorded runs for people (and, in `described` and `whole`, as data). Records are files and may contain anything."""

import datetime
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from nodetune.foundation import by_key, nodeset
from nodetune.foundation import text as plain_text
from nodetune.remediation.runs.files import RunError
from nodetune.remediation.runs.record import DOCUMENTS, DONE, INTERRUPTED, MEASURED, RUNNING, UNREADABLE, Run
from nodetune.report.text.apply import print_diff_lines
from nodetune.report.text.lines import Lines, console
from nodetune.report.text.provision import objects, print_stages

STYLE = {RUNNING: "bold", DONE: "green", INTERRUPTED: "yellow", UNREADABLE: "red"}
BEFORE = len("20260101-000000-abcd  2026-01-01 00:00  " + "  " * 2)
"""Width of a run in a list without its command, state and hosts."""

OUTCOME_STYLE = {"fixed": "green", "pending reboot": "cyan", "skipped": "dim"}


def described(run: Run) -> dict[str, Any]:
    """Describe one run: id, started, command, hosts, state, exit code; the state says if the record is invalid."""
    try:
        about, state = run.about, run.state()
    except RunError as problem:
        return {"id": run.id, "state": UNREADABLE, "message": str(problem)}
    kept = ("command", "started", "ended", "user", "inventory", "exit")
    controller = about.get("controller")
    machine = controller.get("machine", "") if isinstance(controller, dict) else ""
    return {
        "id": run.id,
        "state": state,
        **{name: about.get(name) for name in kept},
        "machine": machine,
        "hosts": run.hosts,
    }


def whole(run: Run) -> dict[str, Any]:
    """Return the whole record of a run, except facts and journal entries. Raise RunError."""
    documents = {name: run.document(name) for name in DOCUMENTS}
    diffs = {host: run.diff(host) for host in run.about["hosts"]}
    return {
        "schema": "nodetune.run-record/1",
        "folder": str(run.folder),
        **described(run),
        "options": run.about.get("options"),
        **documents,
        "diffs": {host: text for host, text in diffs.items() if text},
        "events": run.events(),
    }


def print_runs(stream: TextIO, found: Sequence[Run], last: int, folder: Path) -> None:
    """Print one line for each run, newest first."""
    out = Lines(console(stream))
    rows = [_row(described(run)) for run in found[:last]]
    named = max((len(what) for _, what, *_ in rows), default=0)
    ended = max((len(state) for *_, (state, _), _ in rows), default=0)
    if any(len(where) + named + ended > out.room(" " * BEFORE) for *_, where in rows):
        ended = 0  # no room for a column
    for run, (began, what, (state, style), where) in zip(found, rows, strict=False):
        columns = f"  {began:<16}  {what:<{named}}  ", (f"{state:<{ended}}", style), f"  {where}"
        out.line((run.id, "bold"), *columns, hang=" " * 4)
    if len(found) > last:
        out.line((f"{len(found) - last} older: nodetune runs -n {len(found)}", "dim"))
    out.whole(
        (f"{plain_text.count(len(found), 'run')} in {folder}" if found else f"No runs are recorded in {folder}.", "")
    )
    if found:
        out.whole(("show one: ", "dim"), (f"nodetune runs show {found[0].id}", "green"))


def _row(about: Mapping[str, Any]) -> tuple[str, str, tuple[str, str], str]:
    """Return the start, command, state (with its style) and hosts of a run."""
    hosts = about.get("hosts", [])
    what = plain_text.plain(about.get("command") or about.get("message", ""))
    return _when(about.get("started")), what, _ended(about), nodeset.fold(hosts) if hosts else ""


def _ended(about: Mapping[str, Any]) -> tuple[str, str]:
    state = str(about["state"])
    code = about.get("exit")
    if state == DONE and code:
        return f"done, exit code {plain_text.plain(code)}", "yellow"
    if state == "elsewhere":
        return f"not ended on {plain_text.plain(about.get('machine'))}", "yellow"
    return state, STYLE.get(state, "")


def _when(started: Any) -> str:
    """Format the recorded time as local time."""
    try:
        return datetime.datetime.fromisoformat(str(started)).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return ""


def print_run(stream: TextIO, run: Run, diff: bool) -> None:
    """Print one run: the plan, the outcomes, and with `diff` the changes."""
    out = Lines(console(stream))
    about = described(run)
    run.about  # noqa: B018  (raises for a record that is not one)
    out.line((run.id, "bold"), "  ", plain_text.plain(about["command"]), "  ", _ended(about))
    out.line(
        f"{_when(about['started'])} by {plain_text.plain(about['user'])} on {plain_text.plain(about['machine'])}",
        indent="  ",
    )
    out.line(f"hosts {nodeset.fold(run.hosts)}", indent="  ")
    out.whole((str(run.folder), "dim"), indent="  ")
    out.line("")
    provisioned = run.document("provision")
    if isinstance(provisioned, dict):
        _print_provisioned(out, run, provisioned)
    else:
        _print_planned(out, run)
    if diff:
        for host in run.about["hosts"]:
            _print_diff(out, host, run.diff(host))
    elif any(run.diff(host) for host in run.about["hosts"]):
        out.whole(("changes: ", "dim"), (f"nodetune runs show {run.id} --diff", "green"))


def _print_provisioned(out: Lines, run: Run, document: Mapping[str, Any]) -> None:
    """Print a provision or upgrade: the stages, the steps of its apply (if any) and the figures."""
    print_stages(out, list(objects(document.get("hosts"))))
    steps = list(objects(run.document("outcomes")))
    if steps:
        out.line("")
        _print_steps(out, steps)
    _print_measured(out, run)


def _print_planned(out: Lines, run: Run) -> None:
    plan = run.document("plan")
    planned = plan.get("steps") if isinstance(plan, dict) else None
    _print_steps(out, list(objects(run.document("outcomes"))) or list(objects(planned)))
    _print_measured(out, run)


def _print_steps(out: Lines, steps: Iterable[Mapping[str, Any]]) -> None:
    """Print steps, with equal steps folded over their hosts."""
    words = ("check", "before", "after", "outcome", "reason")
    same = by_key(
        (tuple([plain_text.plain(step.get(name) or "") for name in words]), plain_text.plain(step.get("host") or ""))
        for step in steps
    )
    for (check, before, after, outcome, reason), hosts in same.items():
        result = outcome or "planned"
        out.line(
            (f"{result:<14}", OUTCOME_STYLE.get(result, "yellow")), "  ", (check, "bold"), f"  {nodeset.fold(hosts)}"
        )
        out.line(before, " → ", after, *([f"   {reason}"] if reason else []), indent=" " * 16)
    if not same:
        out.line("No plan is recorded.")


def _print_measured(out: Lines, run: Run) -> None:
    """Print the results of --verify; only the first if the run ended before the second."""
    found = [name for name in (*MEASURED, "verify") if run.document(name) is not None]
    paths = [str(run.folder / f"{name}.json") for name in found]
    if len(paths) == len(MEASURED):
        out.whole(("effect: ", "dim"), (shlex.join(["nodetune", "verify", "--compare", *paths]), "green"))
    elif paths:
        out.whole(("measured: ", "dim"), (paths[0], ""))


def _print_diff(out: Lines, host: str, diff: str) -> None:
    if not diff:
        return
    out.line("")
    out.line((plain_text.plain(host), "bold underline"))
    print_diff_lines(out, diff)
