"""Roll back runs: reach the hosts as the run did, ask, and report."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TextIO

import click
from click.core import ParameterSource

from nodetune.cli import verbosity
from nodetune.cli.commands import _apply
from nodetune.cli.host_options import HostOptions
from nodetune.cli.terminal import Terminal
from nodetune.foundation import json_document, nodeset, text
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.remediation import document, rollback
from nodetune.remediation.request import RollbackRequest
from nodetune.remediation.rollback import Outcomes, Undoing
from nodetune.remediation.runs import earlier_runs
from nodetune.remediation.runs.connection import RECORDED
from nodetune.remediation.runs.record import Run
from nodetune.report.text import apply
from nodetune.report.text.lines import Lines, console

Rolled = tuple[int, list[str]]
"""The exit code, and the ids of the runs that recorded it."""


def prepare(request: RollbackRequest, typed: HostOptions) -> list[Undoing]:
    """Return what to roll back, newest run first. Raise RunError, InventoryError."""
    reached = [(of, hosts, options_of(of, typed)) for of, hosts in rollback.runs_of(request)]
    _announce([(of, options.inventory) for of, _, options in reached])
    limited = _is_typed("limit") or _is_typed("failed_of")
    prepared: list[Undoing] = []
    for of, hosts, options in reached:
        # the password is asked once, for all of them
        connection = options.built(prepared[0].connection.become_password if prepared else None)
        prepared.append(rollback.prepare(of, hosts, connection, request, limited, Terminal()))
    for damage in dict.fromkeys(damage for each in prepared for damage in each.damages):
        verbosity.note(f"{damage}: the host's own journal is rolled back, if it is whole")
    return prepared


def roll_back(undoing: Undoing, dry_run: bool, yes: bool, stream: TextIO, output_format: str) -> Rolled:
    """Roll back one run."""
    if undoing.request.run == "last":
        verbosity.note(f"`last` is {undoing.title} on {nodeset.fold(target.name for target in undoing.targets)}")
    if dry_run:
        return _shown(undoing.dry_run(), stream, output_format, []), []
    if not yes:
        _apply.need_terminal(yes)
        expected = undoing.dry_run()
        if not any(rollback.touched(outcome) for outcome in expected.values()):
            return _shown(expected, stream, output_format, []), []
        apply.print_rollback(sys.stderr, expected, ())
        _apply.confirm(f"Roll back {undoing.title} on {text.count(len(undoing.targets), 'host')}?", yes)
    run, outcomes = undoing.carry_out(Terminal())
    code = _shown(outcomes, stream, output_format, [run])
    if code == END_STATE_MISSED and undoing.request.run == "last":
        older = earlier_runs.before(undoing.of, undoing.request.runs_folder)
        more = f"; to leave it so and go on: nodetune rollback {older.id}" if older else ""
        verbosity.note(f"`last` is still run {undoing.of.id}, of which something is left{more}")
    return code, [run]


def roll_back_all(
    spec: str, prepared: Sequence[Undoing], dry_run: bool, yes: bool, stream: TextIO, output_format: str
) -> Rolled:
    """Roll back all remaining runs on some hosts."""
    count = text.count(len(prepared), "run")
    if dry_run:
        _list(stream, prepared)
        told = f"dry run: {count} would be rolled back on {text.plain(spec, 100)}. Nothing was changed."
        Lines(console(stream)).line((told, "bold"))
        if stream is not sys.stdout:
            verbosity.note(told)
        return OK, []
    if not yes:
        _apply.need_terminal(yes)
        _list(sys.stderr, prepared)
        _apply.confirm(f"Roll back {count} on {spec}?", yes)
    done = [each.carry_out(Terminal()) for each in prepared]
    runs = [run for run, _ in done]
    return _shown(rollback.joined(outcomes for _, outcomes in done), stream, output_format, runs), runs


def options_of(of: Run, typed: HostOptions) -> HostOptions:
    """Return the connection options of the run, with what is typed now in their place."""
    recorded: dict[str, Any] = of.about.get("options", {})
    known = {name: recorded[name] for name in RECORDED if name in recorded}
    if "vault_id" in known:
        known |= {"vault_password_file": None, "ask_vault_pass": False}
    known["inventory"] = of.about.get("inventory")
    options = replace(typed, **{name: value for name, value in known.items() if not _is_typed(name)})
    return replace(options, limit=options.limit if options.inventory else None)


def _is_typed(name: str) -> bool:
    """Tell whether the command line holds an option; the run knows better than settings how its hosts were reached."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _announce(runs: Sequence[tuple[Run, str | None]]) -> None:
    """Say which inventory each run was made with, unless the command line names one."""
    if _is_typed("inventory"):
        return
    for spec in dict.fromkeys(inventory for _, inventory in runs):
        found = [of for of, inventory in runs if inventory == spec]
        of_cluster = found[0].about.get("options", {}).get("transport") == "kubernetes"
        told = text.plain(spec or ("all nodes of the cluster" if of_cluster else "this host"))
        click.echo(f"inventory: {told} (run {', '.join(of.id for of in found)})", err=True)


def _list(stream: TextIO, prepared: Sequence[Undoing]) -> None:
    """Say which runs would be rolled back, and what each changed."""
    for each in prepared:
        apply.print_standing(stream, each.title, [target.name for target in each.targets], each.labels)


def _shown(outcomes: Outcomes, stream: TextIO, output_format: str, made: Sequence[str]) -> int:
    """Print what was undone, what was refused and what failed. Return the exit code."""
    if output_format == "json":
        stream.write(json_document.text(document.rolled_back(made, outcomes)))
    else:
        apply.print_rollback(stream, outcomes, made)
    if stream is not sys.stdout:
        verbosity.note(apply.rolled_back(outcomes, made))
    return rollback.exit_code(outcomes)
