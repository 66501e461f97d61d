"""`nodetune rollback`."""

from pathlib import Path

import click

from nodetune.cli import change_options, completion, host_options, requests, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.host_options import HostOptions
from nodetune.remediation.request import RollbackRequest


@requests.command("rollback", RollbackRequest, typed=HostOptions)
@click.argument("run", required=False, shell_complete=completion.run)
@click.option("--all", "every", metavar="HOST", help="Roll back every run that changed these hosts, newest first.")
@host_options.hosts_of_run
@click.option("--force", is_flag=True, help="Also undo what was changed since.")
@click.option("--dry-run", is_flag=True, help="Show what would be undone; change nothing.")
@change_options.drain
@change_options.waits(RollbackRequest)
@change_options.assume_drained
@change_options.agree
@change_options.runs_folder
@cli_options.output_format
@cli_options.output
@cli_options.history
@verbosity.progress_option
def command(
    request: RollbackRequest,
    typed: HostOptions,
    history: str,
    dry_run: bool,
    yes: bool,
    output_format: str,
    output: Path | None,
) -> int:
    """Undo a run: restore files and running values.

    RUN is an id, the beginning of an id, or `last`: the last run on this controller, whatever hosts it changed, or the
    one before it if that is rolled back (see nodetune runs). If that run changed nothing, nothing is done. Hosts and
    connection options come from that run unless given here. What someone changed since is reported and kept, unless
    --force is given. Settings that need a boot (kernel arguments) take effect at the next boot. The rollback is
    recorded as a run.

    \b
    nodetune rollback last                  the last run; again, the one before it
    nodetune rollback --all gpu001          everything that nodetune changed on gpu001

    Exit code: 0 done or declined, 2 usage, 3 hosts not reached, 4 something could not be undone.
    """
    from nodetune.cli.commands import _apply, _rollback

    with cli_options.writing(output) as stream:
        prepared = _rollback.prepare(request, typed)
        if request.every is not None:
            code, runs = _rollback.roll_back_all(request.every, prepared, dry_run, yes, stream, output_format)
        else:
            code, runs = _rollback.roll_back(prepared[0], dry_run, yes, stream, output_format)
    for run in runs:
        _apply.keep_run(history, run, request.runs_folder)
    return code
