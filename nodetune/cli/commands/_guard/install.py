"""`nodetune guard install`: the guard put on nodes, or brought up to date."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune.cli import as_typed, change_options, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.commands._guard import _settings, _work
from nodetune.cli.commands._guard._work import Work
from nodetune.cli.progress import Progress
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.guard.deploy import nodes
from nodetune.guard.deploy.nodes import InstallOptions, NodeAnswer
from nodetune.guard.deploy.paths import HOME
from nodetune.guard.deploy.playbooks import GuardPlaybooks
from nodetune.hosts import nodeset
from nodetune.report.text import apply, guard


@click.command("install")
@cli_options.hosts
@cli_options.judging
@_settings.policy
@click.option(
    "--python", callback=_settings.full_path, metavar="PATH", help="Path of Python 3.10 or newer on the nodes."
)
@click.option("--write-slurm-conf", is_flag=True, help="Add the lines to slurm.conf instead of printing them.")
@click.option("--reconfigure", is_flag=True, help="Run scontrol reconfigure afterwards.")
@click.option("--timer", is_flag=True, help="Also run the gating checks every minute from a systemd timer.")
@click.option(
    "--textfile",
    callback=_settings.full_path,
    metavar="FILE",
    default="",
    help="Metrics file for node-exporter that the timer writes, such as /var/lib/prometheus/node-exporter/nodetune.prom.",
)
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@change_options.agree
@change_options.runs_folder
@verbosity.progress_option
def command(runs_folder: Path | None, **options: Any) -> int:
    """Install or upgrade the guard on nodes.

    \b
    nodetune guard install -i prod -b --dry-run               show all changes
    nodetune guard install -i prod -b                         observe: log decisions, hold no job
    nodetune guard install -i prod -b --mode enforce          keep jobs off failing nodes

    Never restarts slurmd. `nodetune guard uninstall` removes the guard; `nodetune rollback RUN` undoes one run.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something could not be installed.
    """
    if options["textfile"] and not options["timer"]:
        raise click.UsageError("--textfile needs --timer")
    if options["textfile"] and not options["textfile"].endswith(".prom"):
        raise click.UsageError("--textfile needs a name that ends in .prom, as node-exporter requires")
    settings.announce()
    return _install(options, runs_folder, sys.stdout)


def _install(options: dict[str, Any], root: Path | None, stream: TextIO) -> int:
    """Probe, show, ask, install, and tell what the running Slurm says. Raise nodes.SettingError, yaml_lines.FileError."""
    how, given = _how(options), _settings.given(options)
    dry_run, yes = options.pop("dry_run"), options.pop("yes")
    work = _work.prepare(options, judge=True)
    made = _work.policies(work, given)
    _describe(work, made, stream)
    if dry_run:
        return max(work.code, _dry_run(work, made, how, stream))
    if not work.nodes:
        return work.code
    modes = ", ".join(sorted({policy["mode"] for policy in made.values()}))
    _apply.confirm(f"Install the guard ({modes}) on {work.many}?", yes)
    run = _work.recorded("guard install", given, work, root)
    code = END_STATE_MISSED
    try:
        with Progress("guard install", len(work.nodes)) as shown:
            plays = GuardPlaybooks(work.targets, work.reach, run, shown.heard)
            before = plays.ask([node for node in work.nodes if node.policy])
            plays.install(nodes.changes(work.nodes, made, how, before))
            problem = _not_runnable(plays.ask(work.nodes))
            if how.reconfigure and not problem:
                problem = plays.reconfigure(work.nodes)
            there = plays.ask([node for node in work.nodes if node.slurm])
        code = max(plays.code(), END_STATE_MISSED if problem else OK, work.code)
    finally:
        run.finish(code)
    _work.tell(stream, plays, problem)
    written = how.write_slurm_conf and plays.code() == OK and all(node.writable_conf for node in work.nodes)
    guard.print_running(stream, work.nodes, there, written)
    guard.print_hurried(stream, {host: found.slurm for host, found in there.items()}, made)
    apply.print_way_back(stream, run.id, as_typed.runs_folder())
    return code


def _not_runnable(there: Mapping[str, NodeAnswer]) -> str:
    """Name the hosts that cannot run the program that Slurm would call: Slurm would drain them."""
    found = {host: answer.entry for host, answer in there.items() if answer.entry}
    if not found:
        return ""
    first = next(iter(found.values()))
    return f"{HOME}/prolog cannot be run on {nodeset.fold(found)}: {first}; fix this before Slurm calls it"


def _describe(work: Work, made: Mapping[str, Mapping[str, Any]], stream: TextIO) -> None:
    guard.print_not_reached(stream, work.lost, work.asked)
    guard.print_policies(stream, made)
    guard.print_differences(stream, _work.differences([node for node in work.nodes if node.policy], made))
    guard.print_failing(stream, work.nodes)
    guard.print_gres(stream, work.nodes)


def _how(options: dict[str, Any]) -> InstallOptions:
    timer, textfile = options.pop("timer"), options.pop("textfile")
    return InstallOptions(
        options.pop("python"),
        options.pop("write_slurm_conf"),
        options.pop("reconfigure"),
        textfile if timer else None,
    )


def _dry_run(work: Work, made: Mapping[str, Mapping[str, Any]], how: InstallOptions, stream: TextIO) -> int:
    plays = GuardPlaybooks(work.targets, work.reach, None, _apply.silent)
    plays.change(nodes.changes(work.nodes, made, how, plays.ask(work.nodes)))
    if not how.write_slurm_conf:
        found = {node.name: node.settings for node in work.nodes if node.slurm}
        guard.print_lacking(stream, found, reload=False)
    guard.print_hurried(stream, {node.name: node.settings for node in work.nodes}, made)
    return _work.show(stream, plays)
