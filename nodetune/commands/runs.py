"""`nodetune runs`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nodetune import runs
from nodetune.commands import _complete, _options


@click.group("runs", invoke_without_command=True)
@_options.runs_folder
@click.option("-n", "--last", type=click.IntRange(1), default=20, show_default=True, help="How many, newest first.")
@_options.output_format
@click.pass_context
def command(context: click.Context, runs_folder: Path | None, last: int, output_format: str) -> None:
    """The runs that changed hosts: what each did, and to what end."""
    context.obj = runs_folder
    if context.invoked_subcommand:
        return
    from nodetune.report import data, runs_text

    found = runs.listing(runs_folder)
    if output_format == "json":
        described = [runs_text.described(run) for run in found[:last]]
        click.echo(
            data.text({"schema": "nodetune.runs/1", "folder": str(runs.place(runs_folder)), "runs": described}),
            nl=False,
        )
        return
    runs_text.print_runs(sys.stdout, found, last, runs.place(runs_folder))


@command.command("show")
@click.argument("run", shell_complete=_complete.run)
@_options.runs_folder
@click.option("--diff", is_flag=True, help="Also every difference that the run made in files and settings.")
@_options.output_format
@click.pass_context
def show_run(context: click.Context, run: str, runs_folder: Path | None, diff: bool, output_format: str) -> None:
    """Show one run: its plan, and what became of each step. RUN is an id, the beginning of one, or: last."""
    from nodetune.report import data, runs_text

    found = runs.find(run, runs_folder or context.obj)
    if output_format == "json":
        click.echo(data.text(runs_text.whole(found)), nl=False)
        return
    runs_text.print_run(sys.stdout, found, diff)
