"""`nodetune apply`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from nodetune.api.model import DISRUPTIONS, disruption_name
from nodetune.cli import as_typed, change_options, renamed, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply, _apply_verify
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.remediation.request import ApplyRequest
from nodetune.report import rows
from nodetune.verify import suites
from nodetune.verify.compare import FEWEST
from nodetune.verify.suites import SuiteRequest

if TYPE_CHECKING:
    from nodetune.remediation.host_operations import ApplyOptions
    from nodetune.remediation.plan import HostPlan

BY_NAME = {disruption_name(value): value for value in DISRUPTIONS}
OLD_NAMES = {value: name for name, value in BY_NAME.items() if name != value}
"""Names of disruptions on the command line: today's, and those of the previous release."""


@click.command("apply")
@cli_options.hosts
@cli_options.selection
@click.option(
    "--max-disruption",
    type=renamed.Choice(list(BY_NAME), was=OLD_NAMES),
    default="new-sessions",
    show_default=True,
    help="Maximum disruption allowed. Anything above new-sessions also needs idle GPUs and a drained or cordoned node.",
)
@click.option("--dry-run", is_flag=True, help="Run Ansible in check mode and show the diff of every file and setting.")
@change_options.agree
@click.option("--reboot", is_flag=True, help="Reboot hosts if a change needs it.")
@change_options.drain
@change_options.waits(ApplyRequest)
@change_options.assume_drained
@change_options.batches(ApplyRequest)
@click.option(
    "--max-failures",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Do not start another batch if more hosts than this have failed.",
)
@click.option("--verify", is_flag=True, help="Measure hosts before and after, and report the effect of the changes.")
@click.option("--suite", type=click.Choice(suites.NAMES), help="Measurements for --verify. Default: quick.")
@click.option(
    "--repeat",
    type=click.IntRange(FEWEST, 100),
    metavar="N",
    help=f"Repetitions for --verify, before and after. Default: {FEWEST}, the minimum to distinguish a change from noise.",
)
@change_options.runs_folder
@cli_options.rows_format
@cli_options.output
@verbosity.progress_option
def command(
    dry_run: bool,
    yes: bool,
    runs_folder: Path | None,
    output_format: str,
    output: Path | None,
    **options: Any,
) -> int:
    """Fix what the audit finds; can be rolled back.

    \b
    nodetune apply                                   this machine, without disruption
    nodetune apply -i prod -b --dry-run              show every change on every host; change nothing
    nodetune apply -i prod -b --max-disruption reboot --reboot --drain slurm --batch 10%
    nodetune apply -i prod -b --verify               measure before and after

    A second audit decides whether the fixes worked. `nodetune rollback RUN` undoes all changes of a run.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 the end state was not reached, 5 (--verify) something became
    slower or is below target.
    """
    if dry_run and output_format in rows.FORMATS:
        raise click.UsageError("--dry-run writes text or json: nodetune plan --format json lists the steps")
    apply_options = _apply_options(options)
    given = dict(options)
    wanted = _wanted(options.pop("verify"), options.pop("suite"), options.pop("repeat"))
    settings.announce()
    reach = cli_options.reach(options)
    choice = cli_options.choice(**options)
    work = _apply.prepare(reach, choice, apply_options, as_typed.judged(choice))
    with cli_options.writing(output) as stream:
        if dry_run:
            if wanted:
                click.echo("--verify is ignored with --dry-run, which changes nothing", err=True)
            return _apply.dry_run(work, stream, output_format)
        if output_format == "text":
            _apply.print_plan(stream, work)
        if not work.busy:
            return _nothing(stream, work, output_format)
        if wanted:
            _apply_verify.announce(wanted, work, apply_options)
        _confirm(work.busy, apply_options, yes)
        with _apply.recorded(work, apply_options, given, runs_folder) as run:
            before_after = _apply_verify.before_after(wanted, work, run) if wanted else None
            return _apply.carry_out(work, apply_options, run, before_after, stream, output_format)


def _wanted(verify: bool, suite: str | None, repeat: int | None) -> SuiteRequest | None:
    """Return what --verify measures. Raise click.UsageError."""
    if not verify and (suite or repeat):
        raise click.UsageError("--suite and --repeat need --verify")
    return SuiteRequest(suite=suite or "quick", repeat=repeat or FEWEST) if verify else None


def _apply_options(options: dict[str, Any]) -> ApplyOptions:
    from nodetune.remediation import batches
    from nodetune.remediation.host_operations import ApplyOptions

    apply_options = ApplyOptions(
        max_disruption=BY_NAME[options.pop("max_disruption")],
        reboot=options.pop("reboot"),
        reboot_seconds=options.pop("reboot_wait") * 60,
        drain=bool(options.pop("drain")),
        drain_seconds=options.pop("drain_wait") * 60,
        assume_drained=options.pop("assume_drained"),
        batch=options.pop("batch"),
        canary=options.pop("canary"),
        max_failures=options.pop("max_failures"),
    )
    # report a wrong --batch before connecting to hosts
    batches.check(apply_options.batch)
    if apply_options.reboot and apply_options.max_disruption != "reboot":
        raise click.UsageError("--reboot needs --max-disruption reboot")
    return apply_options


def _confirm(busy: Sequence[HostPlan], apply_options: ApplyOptions, yes: bool) -> None:
    steps = sum(len(each.findings) for each in busy)
    hosts = f"{len(busy)} hosts" if len(busy) > 1 else busy[0].host
    more = ", and reboot if needed" if apply_options.reboot else ""
    _apply.confirm(f"Apply {steps} steps on {hosts}{more}?", yes)


def _nothing(stream: TextIO, work: _apply.Work, output_format: str) -> int:
    """Report that there is nothing to do, without starting Ansible."""
    if output_format != "text":
        _apply.print_data(stream, work, _apply.ApplyReport(None, work.skipped), output_format)
    return END_STATE_MISSED if work.waiting else INCOMPLETE if work.not_reached else OK
