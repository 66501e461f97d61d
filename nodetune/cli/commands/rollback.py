"""`nodetune rollback`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune.cli import completion
from nodetune.cli import options as cli_options
from nodetune.foundation import atomic_file


@click.command("rollback")
@click.argument("run", shell_complete=completion.run)
@cli_options.hosts
@click.option("--force", is_flag=True, help="Also undo what someone changed since.")
@click.option("--dry-run", is_flag=True, help="Show what would be undone; change nothing.")
@cli_options.assume_drained
@cli_options.agree
@cli_options.runs_folder
@cli_options.output_format
@cli_options.output
def command(run: str, runs_folder: Path | None, output_format: str, output: Path | None, **options: Any) -> int:
    """Undo a run: restore files and running values.

    RUN is an id, the beginning of an id, or `last` (see nodetune runs). Hosts and connection options come from that run
    unless given here. What someone changed since is reported and kept, unless --force is given. Settings that need a
    boot (kernel arguments) take effect at the next boot. The rollback is recorded as a run.

    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something could not be undone.
    """
    from nodetune.cli.commands import _rollback

    with atomic_file.output(output) as stream:
        return _rollback.roll_back(run, runs_folder, options, stream, output_format)
