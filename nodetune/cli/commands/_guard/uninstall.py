"""`nodetune guard uninstall`: the guard taken off nodes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune.cli import as_typed, change_options, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.commands._guard import _work
from nodetune.cli.commands._guard._work import Work
from nodetune.cli.progress import Progress
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.guard.deploy import slurm_conf
from nodetune.guard.deploy.nodes import GuardedNode, NodeAnswer, detached, removed
from nodetune.guard.deploy.playbooks import GuardPlaybooks
from nodetune.hosts import nodeset
from nodetune.report.text import apply, guard
from nodetune.report.text.lines import Lines, console


@click.command("uninstall")
@cli_options.hosts
@click.option("--reconfigure", is_flag=True, help="Run scontrol reconfigure before programs are removed.")
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@change_options.agree
@change_options.runs_folder
@verbosity.progress_option
def command(runs_folder: Path | None, **options: Any) -> int:
    """Remove the guard from nodes.

    Restores slurm.conf, then removes policy and programs. Programs stay where the running Slurm still calls them:
    without them, Slurm would drain the node. Journals and the program archive stay in /var/lib/nodetune, so that
    `nodetune rollback RUN` can restore the guard.

    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something was not removed.
    """
    settings.announce()
    return _uninstall(options, runs_folder, sys.stdout)


def _uninstall(options: dict[str, Any], root: Path | None, stream: TextIO) -> int:
    """Take the lines out of slurm.conf, then remove everything else where Slurm no longer calls it."""
    dry_run, yes, reconfigure = options.pop("dry_run"), options.pop("yes"), options.pop("reconfigure")
    work = _work.prepare({**options, "profiles": (), "site": ()}, judge=False)
    guard.print_not_reached(stream, work.lost, work.asked)
    if dry_run:
        return max(work.code, _dry_run(work, stream))
    if not work.nodes:
        return work.code
    _apply.confirm(f"Remove the guard from {work.many}?", yes)
    run = _work.recorded("guard uninstall", {}, work, root)
    code = END_STATE_MISSED
    try:
        with Progress("guard uninstall", len(work.nodes)) as shown:
            plays = GuardPlaybooks(work.targets, work.reach, run, shown.heard)
            problem, called = _take_off(work, plays, reconfigure)
        code = max(plays.code(), END_STATE_MISSED if problem or called else OK, work.code)
    finally:
        run.finish(code)
    _work.tell(stream, plays, problem)
    if called:
        names = nodeset.fold(node.name for node in called)
        text = f"Slurm still calls the guard on {names}: scontrol reconfigure, then uninstall again"
        Lines(console(stream)).line(("left      ", "yellow"), text)
    apply.print_way_back(stream, run.id, as_typed.runs_folder())
    return code


def _dry_run(work: Work, stream: TextIO) -> int:
    plays = GuardPlaybooks(work.targets, work.reach, None, _apply.silent)
    there = plays.ask(work.nodes)
    plays.change({node.name: [*detached(node), *removed(node, there)] for node in work.nodes})
    return _work.show(stream, plays)


def _take_off(work: Work, plays: GuardPlaybooks, reconfigure: bool) -> tuple[str, list[GuardedNode]]:
    """Return what went wrong, and the nodes whose Slurm still calls the guard: their files stay."""
    plays.change({node.name: detached(node) for node in work.nodes})
    problem = plays.reconfigure(work.nodes) if reconfigure else ""
    there = plays.ask(work.nodes)
    called = [node for node in work.nodes if slurm_conf.calls_us(there.get(node.name, NodeAnswer()).slurm or {})]
    free = [node for node in work.nodes if node not in called]
    plays.change({node.name: [*detached(node), *removed(node, there)] for node in free})
    return problem, called
