"""`nodetune apply`."""

from pathlib import Path

import click

from nodetune.cli import change_options, measuring_options, requests, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.requests import of
from nodetune.cli.terminal import Terminal
from nodetune.foundation import text
from nodetune.remediation import apply
from nodetune.remediation.document import ApplyReport
from nodetune.remediation.request import BY_NAME, ApplyRequest
from nodetune.report import rows
from nodetune.verify import suites
from nodetune.verify.compare import MIN_RUNS


@requests.command("apply", ApplyRequest)
@cli_options.changed_nodes
@cli_options.selection
@click.option(
    "--max-disruption",
    type=click.Choice(list(BY_NAME)),
    default=ApplyRequest.max_disruption,
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
    **of(ApplyRequest, "max_failures"),
    metavar="N",
    help="Do not start another batch if more hosts than this have failed.",
)
@click.option("--verify", is_flag=True, help="Measure hosts before and after, and report the effect of the changes.")
@click.option("--suite", type=click.Choice(suites.NAMES), help="Measurements for --verify. Default: quick.")
@measuring_options.disk
@measuring_options.pairs
@click.option(
    "--repeat",
    type=click.IntRange(MIN_RUNS, 100),
    metavar="N",
    help=f"Repetitions for --verify, before and after. Default: {MIN_RUNS}, the minimum to distinguish a change from noise.",
)
@change_options.runs_folder
@cli_options.rows_format
@cli_options.output
@cli_options.history
@verbosity.progress_option
def command(
    request: ApplyRequest, history: str, dry_run: bool, yes: bool, output_format: str, output: Path | None
) -> int:
    """Fix what the audit finds; can be rolled back.

    \b
    nodetune apply                                   this machine, without disruption
    nodetune apply -i prod -b --dry-run              show every change on every host; change nothing
    nodetune apply -i prod -b --max-disruption reboot --reboot --drain slurm --batch 10%
    nodetune apply -i prod -b --verify               measure before and after
    nodetune apply -i prod -b --verify --pairs --canary 2

    A second audit decides whether the fixes worked. `nodetune rollback RUN` undoes all changes of a run.
    Exit code: 0 done, 2 usage, 3 hosts not reached or checks unknown that it may fix, 4 the end state was not reached,
    5 (--verify) something became slower or is below target.
    """
    if dry_run and output_format in rows.FORMATS:
        raise click.UsageError("--dry-run writes text or json: nodetune plan --format json lists the steps")
    settings.announce()
    show = Terminal()
    prepared = apply.prepare(request, show)
    with cli_options.writing(output) as stream:
        if dry_run:
            if request.verify:
                show.warn("--verify is ignored with --dry-run, which changes nothing")
            outcomes, code = apply.dry_run(prepared, show)
            _apply.print_dry_run(stream, prepared, outcomes, output_format)
            return code
        if output_format == "text":
            _apply.print_plan(stream, prepared)
        if not prepared.busy:
            if output_format != "text":
                _apply.print_data(stream, prepared, ApplyReport(None, prepared.skipped), output_format)
            return prepared.code
        if request.verify:
            show.note(prepared.duration)
        _apply.confirm(_question(prepared), yes)
        report = apply.carry_out(prepared, show)
        _apply.print_report(stream, prepared, report, output_format)
        _apply.keep_run(history, str(report.run or ""), request.runs_folder)
        return report.code


def _question(prepared: apply.Prepared) -> str:
    busy = prepared.busy
    steps = sum(len(each.findings) for each in busy)
    hosts = f"{len(busy)} hosts" if len(busy) > 1 else busy[0].host
    more = ", and reboot if needed" if prepared.request.reboot else ""
    return f"Apply {text.count(steps, 'step')} on {hosts}{more}?"
