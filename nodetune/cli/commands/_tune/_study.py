"""What the commands of `nodetune tune` share: options, the journal, the run, and the result."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from nodetune.cli import options as cli_options
from nodetune.cli import verbosity
from nodetune.foundation import UserError, file_io, json_document, text
from nodetune.foundation.exit_codes import INCOMPLETE, INTERRUPTED, OK
from nodetune.hosts.target import ConnectionOptions
from nodetune.tune import confirm, search, space, study
from nodetune.tune import document as tuning
from nodetune.tune.journal import Journal, JournalError
from nodetune.tune.model import Bench, BenchError, Trial

F = TypeVar("F", bound=Callable[..., Any])


def options(function: F) -> F:
    """Add the options that every subject has."""
    for option in (
        click.option(
            "--budget",
            default="20m",
            show_default=True,
            callback=cli_options.span,
            metavar="TIME",
            help="How long to measure at most (90s, 20m, 2h).",
        ),
        click.option(
            "--save",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="File of the result. Default: tuning-SUBJECT.json. FILE.trials keeps the trials until there is a result.",
        ),
        click.option("--resume", is_flag=True, help="Continue an interrupted tuning with its trials."),
        cli_options.format_option(["text", "html", "json"]),
        cli_options.output,
    ):
        function = option(function)
    return function


def reach(given: dict[str, Any]) -> ConnectionOptions:
    """Return the connection options, and keep them for the commands that are proposed."""
    found = given["reach"] = cli_options.reach(given)
    return found


def run(make: Callable[[], Bench], subject: str, given: Mapping[str, Any]) -> int:
    """Tune, save the result and print it. Return 0 for a decision, 3 if there is none, 130 after Ctrl-C."""
    saved = given["save"] or Path(f"tuning-{subject}.json")
    trials = saved.with_name(f"{saved.name}.trials")
    _refuse_to_overwrite((saved, _site(saved)), trials, resume=given["resume"])
    file_io.check(saved)
    budget, began = float(given["budget"]), time.monotonic()
    try:
        bench = make()
        _say_expected(bench, time.monotonic() - began, budget)
        journal = Journal(trials, tuning.header(bench), resume=given["resume"])
    except (BenchError, JournalError) as problem:
        raise UserError(str(problem)) from None
    try:
        outcome = study.tune(bench, budget, known=list(journal.known), keep=journal.append, tell=_tell)
    except (BenchError, JournalError) as problem:
        click.echo(f"nodetune: {problem}", err=True)
        _say_kept(trials, journal.count)
        return INCOMPLETE
    finally:
        journal.close()
    return _finish(tuning.document(bench, outcome, budget), saved, trials, given)


def _say_expected(bench: Bench, first: float, budget: float) -> None:
    """Say how long it may take, as the first look at the hosts took so many seconds. Too little time is better known now."""
    count = search.expected(bench) + study.FINALISTS * 2 * confirm.RUNS
    words = f"{text.count(len(space.first(bench)), 'setting')} to try, up to {count} trials"
    more = f", longer than --budget ({text.span(budget)})" if count * first > budget else ""
    verbosity.note(f"{words}: at most about {text.span(count * first)}{more}")


def _finish(found: dict[str, Any], saved: Path, trials: Path, given: Mapping[str, Any]) -> int:
    decided = found["state"] in (study.ACCEPTED, study.NOTHING)
    if decided:
        with file_io.output(saved) as stream:
            stream.write(json.dumps(found, indent=1) + "\n")
        trials.unlink(missing_ok=True)
        verbosity.note(f"written to {saved}")
    print_result(found, given["output_format"], given["output"])
    if not decided:
        _say_kept(trials, len(found["trials"]))
    if found["state"] == study.ACCEPTED:
        _say_next(found, _site(saved), given.get("reach"))
    return OK if decided else INTERRUPTED if found["state"] == study.STOPPED else INCOMPLETE


def _say_kept(trials: Path, count: int) -> None:
    """Say where the trials are. A file without any is in the way of the next tuning."""
    if count:
        click.echo(f"no result yet: {text.count(count, 'trial')} kept in {trials}: --resume continues", err=True)
    else:
        trials.unlink(missing_ok=True)


def print_result(found: Mapping[str, Any], output_format: str, output: Path | None) -> None:
    """Print the document of a tuning."""
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(dict(found)))
        elif output_format == "site":
            write_site(stream, found)
        elif output_format == "html":
            from nodetune.report.html import tuning as page

            page.write(stream, found)
        else:
            from nodetune.report.text import tuning as lines

            lines.print_tuning(stream, found)


def write_site(stream: TextIO, found: Mapping[str, Any]) -> None:
    """Write the proposal as a site file. Raise UserError if there is none."""
    import yaml

    if not found["proposal"]:
        raise UserError(f"{found['state']}: there is no proposal for a site file")
    stream.write(f"# {text.plain(found['subject'])}: {text.plain(found['reason'], 600)}\n")
    yaml.safe_dump(json.loads(json.dumps(found["proposal"])), stream, sort_keys=False)


def _site(saved: Path) -> Path:
    return saved.with_suffix(".site.yml")


def _say_next(found: Mapping[str, Any], site: Path, where: ConnectionOptions | None) -> None:
    """Write the proposal as a site file, and say which commands carry it out."""
    if not found["proposal"]:
        click.echo("It is no setting of a host: pass it to your jobs.", err=True)
        return
    with file_io.output(site) as stream:
        write_site(stream, found)
    if verbosity.is_quiet():
        return
    options = shlex.join([*replace(where, transport="auto").words, "--site", str(site)]) if where else f"--site {site}"
    hosts = " ".join(str(host) for host in found["provenance"].get("hosts", ()))
    click.echo(f"\nproposal: {site} (add it to the site file of these hosts: {text.plain(hosts, 200)})", err=True)
    click.echo(f"nodetune plan {options}     what it changes; then apply, verify, and rollback if you want", err=True)


def _refuse_to_overwrite(results: Sequence[Path], trials: Path, *, resume: bool) -> None:
    for each in results:
        if each.exists():
            raise UserError(f"{each}: exists: move it away, or name another file with --save")
    if trials.exists() and not resume:
        raise UserError(f"{trials}: the trials of an interrupted tuning: --resume continues it; or delete the file")
    if resume and not trials.exists():
        raise UserError(f"{trials}: does not exist: there is nothing to resume; leave --resume out")


def _tell(phase: str, trial: Trial) -> None:
    """Say on the terminal which trial ended. Nothing in a log: there it would be thousands of lines."""
    if not sys.stderr.isatty() or verbosity.is_quiet():
        return
    state = trial.banned or trial.failed or trial.disturbed
    click.echo(f"{phase}: {space.in_words(trial.setting)}{': ' + text.plain(state, 100) if state else ''}", err=True)
