"""`nodetune slurm install`: the guard put on nodes, or brought up to date."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune import nodeset
from nodetune.commands import _apply, _options
from nodetune.commands._slurm import _settings, _work
from nodetune.commands._slurm._work import Work
from nodetune.outcome import NOT_REACHED, OK
from nodetune.report import apply_text, slurm_text
from nodetune.slurm import nodes
from nodetune.slurm.nodes import How
from nodetune.slurm.places import HOME
from nodetune.slurm.plays import Answer, Plays


@click.command("install")
@_options.hosts
@_options.judging
@_settings.policy
@click.option(
    "--python", callback=_settings.full_path, metavar="PATH", help="The interpreter (3.10 or newer) on the nodes."
)
@click.option(
    "--write-slurm-conf", is_flag=True, help="Write the lines into slurm.conf as well, instead of showing them."
)
@click.option("--reconfigure", is_flag=True, help="Let Slurm read its configuration anew afterwards.")
@click.option("--timer", is_flag=True, help="Also run the gating checks once a minute, without Slurm.")
@click.option(
    "--textfile",
    callback=_settings.full_path,
    metavar="FILE",
    default="",
    help="Where the timer writes metrics for node-exporter, such as /var/lib/prometheus/node-exporter/nodetune.prom.",
)
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@_options.agree
@_options.runs_folder
def command(runs_folder: Path | None, **options: Any) -> int:
    """Put the guard on nodes, or bring it up to date.

    \b
    nodetune slurm install -i prod -b --dry-run               show what would land where
    nodetune slurm install -i prod -b                         observe: decide and log, hold no job
    nodetune slurm install -i prod -b --mode enforce          hold jobs back from sick nodes

    Never restarts slurmd. `nodetune slurm uninstall` takes it off; `nodetune rollback RUN` takes back what one run did.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something could not be installed.
    """
    if options["textfile"] and not options["timer"]:
        raise click.UsageError("--textfile wants --timer")
    if options["textfile"] and not options["textfile"].endswith(".prom"):
        raise click.UsageError("--textfile wants a name that ends in .prom: node-exporter reads no other")
    return _install(options, runs_folder, sys.stdout)


def _install(options: dict[str, Any], root: Path | None, stream: TextIO) -> int:
    """Probe, show, ask, install, and tell what the running Slurm says. Raises nodes.BadSetting, located.BadFile."""
    how, given = _how(options), _settings.given(options)
    dry_run, yes = options.pop("dry_run"), options.pop("yes")
    record = {**{name: options[name] for name in _work.WAY}, **given}
    work = _work.prepare(options, judge=True)
    made = nodes.policies(work.nodes, work.choice, given)
    _describe(work, made, stream)
    if dry_run:
        return max(work.code, _rehearse(work, made, how, stream))
    if not work.nodes:
        return work.code
    modes = ", ".join(sorted({policy["mode"] for policy in made.values()}))
    _apply.confirm(f"Install the guard ({modes}) on {work.many}?", yes)
    run = _work.recorded("slurm install", record, work, root)
    code = NOT_REACHED
    try:
        with _apply.progress(len(work.nodes)) as tell:
            plays = Plays(work.targets, work.reach, run, tell)
            before = plays.ask([node for node in work.nodes if node.policy])
            plays.install(nodes.changes(work.nodes, made, how, before))
            problem = _not_runnable(plays.ask(work.nodes))
            if how.reconfigure and not problem:
                problem = plays.reconfigure(work.nodes)
            there = plays.ask([node for node in work.nodes if node.slurm])
        code = max(plays.code(), NOT_REACHED if problem else OK, work.code)
    finally:
        run.finish(code)
    _work.tell(stream, plays, problem)
    slurm_text.print_running(stream, work.nodes, there)
    slurm_text.print_hurried(stream, {host: found.slurm for host, found in there.items()}, made)
    apply_text.print_way_back(stream, run.id)
    return code


def _not_runnable(there: Mapping[str, Answer]) -> str:
    """The hosts that cannot run what Slurm is to call: it would drain each of them."""
    found = {host: answer.entry for host, answer in there.items() if answer.entry}
    if not found:
        return ""
    first = next(iter(found.values()))
    return f"{HOME}/prolog cannot be run on {nodeset.fold(found)}: {first}; let Slurm not call it before it can"


def _describe(work: Work, made: Mapping[str, Mapping[str, Any]], stream: TextIO) -> None:
    slurm_text.print_not_reached(stream, work.lost)
    slurm_text.print_policies(stream, made)
    slurm_text.print_differences(stream, _work.differences([node for node in work.nodes if node.policy], made))
    slurm_text.print_failing(stream, work.nodes)
    slurm_text.print_gres(stream, work.nodes)


def _how(options: dict[str, Any]) -> How:
    timer, textfile = options.pop("timer"), options.pop("textfile")
    return How(
        options.pop("python"),
        options.pop("write_slurm_conf"),
        options.pop("reconfigure"),
        textfile if timer else None,
    )


def _rehearse(work: Work, made: Mapping[str, Mapping[str, Any]], how: How, stream: TextIO) -> int:
    plays = Plays(work.targets, work.reach, None, _apply.silent)
    plays.change(nodes.changes(work.nodes, made, how, plays.ask(work.nodes)))
    if not how.write_slurm_conf:
        found = {node.name: node.settings for node in work.nodes if node.slurm}
        slurm_text.print_lacking(stream, found, reload=False)
    slurm_text.print_hurried(stream, {node.name: node.settings for node in work.nodes}, made)
    return _work.show(stream, plays)
