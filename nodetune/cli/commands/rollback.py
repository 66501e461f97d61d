"""`nodetune rollback`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune.cli import change_options, completion, verbosity
from nodetune.cli import options as cli_options


@click.command("rollback")
@click.argument("run", required=False, shell_complete=completion.run)
@click.option("--all", "every", metavar="HOST", help="Roll back every run that changed these hosts, newest first.")
@cli_options.hosts
@click.option("--force", is_flag=True, help="Also undo what was changed since.")
@click.option("--dry-run", is_flag=True, help="Show what would be undone; change nothing.")
@change_options.assume_drained
@change_options.agree
@change_options.runs_folder
@cli_options.output_format
@cli_options.output
@verbosity.progress_option
def command(
    run: str | None,
    every: str | None,
    runs_folder: Path | None,
    output_format: str,
    output: Path | None,
    **options: Any,
) -> int:
    """Undo a run: restore files and running values.

    RUN is an id, the beginning of an id, or `last`: the newest run that changed something and is not rolled back yet
    (see nodetune runs). Hosts and connection options come from that run unless given here. What someone changed since
    is reported and kept, unless --force is given. Settings that need a boot (kernel arguments) take effect at the next
    boot. The rollback is recorded as a run.

    \b
    nodetune rollback last                  the newest run; again, the one before it
    nodetune rollback --all gpu001          everything that nodetune changed on gpu001

    Exit code: 0 done or declined, 2 usage, 3 hosts not reached, 4 something could not be undone.
    """
    if (run is None) == (every is None):
        raise click.UsageError("give either RUN or --all HOST (see nodetune runs)")
    from nodetune.cli.commands import _rollback

    with cli_options.writing(output) as stream:
        if every is not None:
            return _rollback.roll_back_all(every, runs_folder, options, stream, output_format)
        return _rollback.roll_back(str(run), runs_folder, options, stream, output_format)
