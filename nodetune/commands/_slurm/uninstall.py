"""`nodetune slurm uninstall`: the guard taken off nodes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune import nodeset
from nodetune.commands import _apply, _options
from nodetune.commands._slurm import _work
from nodetune.commands._slurm._work import Work
from nodetune.outcome import NOT_REACHED, OK
from nodetune.report import apply_text, slurm_text
from nodetune.report.text import Lines, console
from nodetune.slurm import conf
from nodetune.slurm.nodes import Node, detached, removed
from nodetune.slurm.plays import Answer, Plays


@click.command("uninstall")
@_options.hosts
@click.option("--reconfigure", is_flag=True, help="Let Slurm read its configuration anew before hooks are removed.")
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@_options.agree
@_options.runs_folder
def command(runs_folder: Path | None, **options: Any) -> int:
    """Take the guard off nodes: slurm.conf as it was before, then hooks, policy and program.

    Hooks stay where the running Slurm still calls them: it would drain a node without them. Journals and the program's
    archive stay under /var/lib/nodetune, so that `nodetune rollback RUN` can put the guard back.

    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something is left.
    """
    return _uninstall(options, runs_folder, sys.stdout)


def _uninstall(options: dict[str, Any], root: Path | None, stream: TextIO) -> int:
    """Lines out of slurm.conf, then everything else where Slurm no longer calls it."""
    dry_run, yes, reconfigure = options.pop("dry_run"), options.pop("yes"), options.pop("reconfigure")
    record = {name: options[name] for name in _work.WAY}
    work = _work.prepare({**options, "profiles": (), "site": None}, judge=False)
    slurm_text.print_not_reached(stream, work.lost)
    if dry_run:
        return max(work.code, _rehearse(work, stream))
    if not work.nodes:
        return work.code
    _apply.confirm(f"Take the guard off {work.many}?", yes)
    run = _work.recorded("slurm uninstall", record, work, root)
    code = NOT_REACHED
    try:
        with _apply.progress(len(work.nodes)) as tell:
            plays = Plays(work.targets, work.reach, run, tell)
            problem, called = _take_off(work, plays, reconfigure)
        code = max(plays.code(), NOT_REACHED if problem or called else OK, work.code)
    finally:
        run.finish(code)
    _work.tell(stream, plays, problem)
    if called:
        names = nodeset.fold(node.name for node in called)
        text = f"Slurm still calls the guard on {names}: scontrol reconfigure, then uninstall again"
        Lines(console(stream)).line(("left      ", "yellow"), text)
    apply_text.print_way_back(stream, run.id)
    return code


def _rehearse(work: Work, stream: TextIO) -> int:
    plays = Plays(work.targets, work.reach, None, _apply.silent)
    there = plays.ask(work.nodes)
    plays.change({node.name: [*detached(node), *removed(node, there)] for node in work.nodes})
    return _work.show(stream, plays)


def _take_off(work: Work, plays: Plays, reconfigure: bool) -> tuple[str, list[Node]]:
    """What went wrong, and the nodes where Slurm still calls the guard: its files stay there."""
    plays.change({node.name: detached(node) for node in work.nodes})
    problem = plays.reconfigure(work.nodes) if reconfigure else ""
    there = plays.ask(work.nodes)
    called = [node for node in work.nodes if conf.calls_us(there.get(node.name, Answer()).slurm or {})]
    free = [node for node in work.nodes if node not in called]
    plays.change({node.name: [*detached(node), *removed(node, there)] for node in free})
    return problem, called
