"""`nodetune apply`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from nodetune.commands import _apply, _apply_verify, _options, _run
from nodetune.model import DISRUPTIONS
from nodetune.outcome import INCOMPLETE, NOT_REACHED, OK
from nodetune.verdict.compare import FEWEST
from nodetune.verdict.suites import SUITES, Wanted

if TYPE_CHECKING:
    from nodetune.field import How
    from nodetune.rollout import Planned


@click.command("apply")
@_options.hosts
@_options.selection
@click.option(
    "--max-disruption",
    type=click.Choice(DISRUPTIONS),
    default="new sessions",
    show_default=True,
    help="The most that may be disrupted. What costs more waits for hosts without GPU processes, drained or cordoned.",
)
@click.option("--dry-run", is_flag=True, help="Run Ansible in check mode and show the diff of every file and setting.")
@_options.agree
@click.option("--reboot", is_flag=True, help="Reboot hosts where something is only in force after the next boot.")
@_options.reboot_wait
@_options.drain
@_options.drain_wait
@_options.assume_drained
@click.option("--batch", default="", metavar="N|N%", help="How many hosts are worked on at a time. Default: all.")
@click.option(
    "--canary", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="Hosts that go first, alone."
)
@click.option(
    "--max-failures",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Begin no further batch when more hosts than this have failed.",
)
@click.option("--verify", is_flag=True, help="Measure the hosts before and after, and tell what the changes brought.")
@click.option("--suite", type=click.Choice(list(SUITES)), help="What --verify measures. Default: quick.")
@click.option(
    "--repeat",
    type=click.IntRange(FEWEST, 100),
    metavar="N",
    help=f"How often --verify measures before, and after. Default: {FEWEST}; fewer tell no change from noise.",
)
@_options.runs_folder
@_options.output_format
@_options.output
def command(
    dry_run: bool,
    yes: bool,
    runs_folder: Path | None,
    output_format: str,
    output: Path | None,
    **options: Any,
) -> int:
    """Fix what the audit finds, prove it, and keep the way back.

    \b
    nodetune apply                                   this machine, nothing disruptive
    nodetune apply -i prod -b --dry-run              show every change on every host; change nothing
    nodetune apply -i prod -b --max-disruption reboot --reboot --drain slurm --batch 10%
    nodetune apply -i prod -b --verify               measure before and after: what did it bring?

    What counts is the audit afterwards. `nodetune rollback RUN` takes everything back.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 the end state was not reached, 5 (--verify) something became
    slower, or is slower than it should be.
    """
    how = _how(options)
    given = dict(options)
    wanted = _wanted(options.pop("verify"), options.pop("suite"), options.pop("repeat"))
    reach = _options.reach(options)
    work = _apply.prepare(reach, _options.choice(**options), how)
    with _run.output_stream(output) as stream:
        if dry_run:
            if wanted:
                click.echo("--dry-run changes nothing: --verify would find nothing, and is left out", err=True)
            return _apply.rehearse(work, stream, output_format)
        if output_format == "text":
            _apply.print_plan(stream, work)
        if not work.busy:
            return _nothing(stream, work, output_format)
        if wanted:
            _apply_verify.announce(wanted, work, how)
        _confirm(work.busy, how, yes)
        run = _apply.begin(work, how, given, runs_folder)
        gauge = _apply_verify.gauge(wanted, work, run) if wanted else None
        return _apply.carry_out(work, how, run, gauge, stream, output_format)


def _wanted(verify: bool, suite: str | None, repeat: int | None) -> Wanted | None:
    """What is to be measured, if anything is. Raises click.UsageError."""
    if not verify and (suite or repeat):
        raise click.UsageError("--suite and --repeat tell how --verify measures: add --verify")
    return Wanted(suite=suite or "quick", runs=repeat or FEWEST) if verify else None


def _how(options: dict[str, Any]) -> How:
    from nodetune import apply
    from nodetune.field import How

    how = How(
        max_disruption=options.pop("max_disruption"),
        reboot=options.pop("reboot"),
        reboot_seconds=options.pop("reboot_wait") * 60,
        drain=bool(options.pop("drain")),
        drain_seconds=options.pop("drain_wait") * 60,
        assume_drained=options.pop("assume_drained"),
        batch=options.pop("batch"),
        canary=options.pop("canary"),
        max_failures=options.pop("max_failures"),
    )
    apply.waves(["any"], how.canary, how.batch)  # a wrong --batch is told before any host is asked
    if how.reboot and how.max_disruption != "reboot":
        raise click.UsageError("--reboot needs --max-disruption reboot")
    return how


def _confirm(busy: Sequence[Planned], how: How, yes: bool) -> None:
    steps = sum(len(each.todo) for each in busy)
    hosts = f"{len(busy)} hosts" if len(busy) > 1 else busy[0].result.host
    more = ", and reboot where needed" if how.reboot else ""
    _apply.confirm(f"Apply {steps} steps on {hosts}{more}?", yes)


def _nothing(stream: TextIO, work: _apply.Work, output_format: str) -> int:
    """Nothing to do: Ansible is not even started."""
    if output_format == "json":
        skipped = [done for each in work.planned for done in each.skipped]
        _apply.print_json(stream, work, _apply.Told(None, skipped))
    return NOT_REACHED if work.waiting else INCOMPLETE if work.not_reached else OK
