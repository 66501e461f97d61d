"""`nodetune rollback`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune.commands import _complete, _options


@click.command("rollback")
@click.argument("run", shell_complete=_complete.run)
@_options.hosts
@click.option("--force", is_flag=True, help="Take back also what someone changed since.")
@click.option("--dry-run", is_flag=True, help="Show what would be taken back; change nothing.")
@_options.assume_drained
@_options.agree
@_options.runs_folder
@_options.output_format
@_options.output
def command(run: str, runs_folder: Path | None, output_format: str, output: Path | None, **options: Any) -> int:
    """Take back what a run changed: files byte for byte, and running values.

    RUN is an id, the beginning of one, or: last (see nodetune runs). Hosts and the way to them are those of that run
    unless options say otherwise. What someone changed since is left alone and shown, unless --force is given. What only
    a boot puts in force (kernel arguments) is taken back at the next boot. The rollback is a run of its own.

    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something could not be taken back.
    """
    from nodetune.commands import _rollback, _run

    with _run.output_stream(output) as stream:
        return _rollback.roll_back(run, runs_folder, options, stream, output_format)
