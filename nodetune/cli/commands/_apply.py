"""The output and questions of `apply` and `provision`."""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import click

from nodetune.cli import proposed_options, verbosity
from nodetune.cli.terminal import Terminal
from nodetune.foundation import UserError, json_document
from nodetune.foundation.exit_codes import OK
from nodetune.remediation import document
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.apply import Prepared
from nodetune.remediation.document import ApplyReport
from nodetune.remediation.runs import earlier_runs
from nodetune.remediation.runs.files import RunError
from nodetune.report import apply_rows, rows
from nodetune.report.sections import CommandOptions
from nodetune.report.text import apply, before_after


def print_plan(stream: TextIO, prepared: Prepared) -> None:
    """Print the steps of this run as `nodetune plan` does, and the skipped ones."""
    from nodetune.report.text import plan

    asked = proposed_options.text(prepared.request.connection, selection=prepared.request.selection)
    commands = CommandOptions(asked, proposed_options.selected(prepared.request.selection))
    plan.print_plan(stream, prepared.without_skipped, commands, proposes=False, ending="")
    apply.print_left(stream, prepared.skipped, len(prepared.plans) == 1)


def print_dry_run(stream: TextIO, prepared: Prepared, outcomes: Mapping[str, Outcome], output_format: str) -> None:
    """Print what would change."""
    single = len(prepared.plans) == 1
    diffs, problems = apply.diffs_of(outcomes), apply.problems_of(outcomes)
    failed = apply.failures_of(outcomes)
    wrong = sum(map(len, problems.values())) + len(failed)
    if output_format == "json":
        stream.write(json_document.text(document.dry_run(diffs, problems, failed, prepared.results)))
    else:
        print_plan(stream, prepared)
        apply.print_diffs(stream, diffs, single)
        apply.print_problems(stream, problems, failed, single)
        apply.print_dry_run(stream, diffs, wrong)
    if stream is not sys.stdout:
        verbosity.note(apply.dry_run(diffs, wrong))


def print_report(stream: TextIO, prepared: Prepared, report: ApplyReport, output_format: str) -> None:
    """Print what was done."""
    if output_format == "text":
        single = len(prepared.plans) == 1
        apply.print_interrupted(stream, report.dead, single)
        apply.print_outcomes(stream, report.done, single)
        if report.verified:
            asked = proposed_options.text(prepared.request.connection)
            before_after.print_gain(stream, report.verified, report.done, asked, single)
        resume = apply.KUBERNETES_RESUME if prepared.request.drain == "kubernetes" else apply.SLURM_RESUME
        apply.print_drained(stream, report.drained, resume)
        print_way_back(stream, str(report.run), prepared.request.runs_folder)
    else:
        print_data(stream, prepared, report, output_format)
    if stream is not sys.stdout:
        command = way_back(str(report.run), prepared.request.runs_folder)
        verbosity.note(f"{apply.counts(report.done)}{f'; to undo it: {command}' if command else ''}")


def print_way_back(stream: TextIO, run: str, runs_folder: Path | None) -> None:
    """Print how to undo a run, or that it changed nothing."""
    apply.print_way_back(stream, run, way_back(run, runs_folder))


def way_back(run: str, runs_folder: Path | None) -> str:
    """Return the command that undoes a run; empty if it changed nothing. A record that cannot be read may have changed all."""
    with contextlib.suppress(RunError):
        if not earlier_runs.changes_anything(run, runs_folder):
            return ""
    return f"nodetune rollback {run} {proposed_options.runs_folder()}".rstrip()


def keep_run(history: str, run: str, runs_folder: Path | None) -> None:
    """Keep in the history what a run did to its hosts."""
    if not history or not run:
        return
    from nodetune.history import keeping
    from nodetune.remediation.runs import actions, record

    with contextlib.suppress(RunError):
        keeping.keep(history, Terminal(), actions=actions.of_run(record.find(run, runs_folder)))


def print_data(stream: TextIO, prepared: Prepared, report: ApplyReport, output_format: str) -> None:
    """Print what a tool reads: JSON, lines or CSV."""
    if output_format in rows.FORMATS:
        rows.write(stream, output_format, apply_rows.HEAD, apply_rows.rows(report.done, prepared.not_reached))
        return
    stream.write(json_document.text(document.applied(report, prepared.results)))


def need_terminal(yes: bool) -> None:
    """Raise UserError where nobody can be asked."""
    if not yes and not sys.stdin.isatty():
        raise UserError("confirmation needs a terminal: use --yes (after --dry-run)")


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal; elsewhere --yes is required. A no ends the command with 0. Raise UserError."""
    need_terminal(yes)
    if not yes and not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(OK)
