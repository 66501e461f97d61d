"""`nodetune runs`."""

import sys
from pathlib import Path

import click

from nodetune.cli import Group, change_options, completion, options
from nodetune.remediation.runs import record


@click.group("runs", cls=Group, invoke_without_command=True)
@change_options.runs_folder
@click.option(
    "-n", "--last", type=click.IntRange(1), default=20, show_default=True, help="Number of runs to list, newest first."
)
@options.printed_format
@click.pass_context
def command(context: click.Context, runs_folder: Path | None, last: int, output_format: str) -> None:
    """List the runs that changed hosts, with their results."""
    context.obj = runs_folder
    if context.invoked_subcommand:
        return
    from nodetune.foundation import json_document
    from nodetune.report.text import runs as text_runs

    found = record.listing(runs_folder)
    if output_format == "json":
        described = [text_runs.described(run) for run in found[:last]]
        told = {"schema": "nodetune.runs/1", "folder": str(record.place(runs_folder)), "runs": described}
        click.echo(json_document.text(told), nl=False)
        return
    text_runs.print_runs(sys.stdout, found, last, record.place(runs_folder))


@command.command("show")
@click.argument("run", shell_complete=completion.run)
@change_options.same_runs_folder
@click.option("--diff", is_flag=True, help="Also show every change in files and settings.")
@options.printed_format
@click.pass_context
def show_run(context: click.Context, run: str, runs_folder: Path | None, diff: bool, output_format: str) -> None:
    """Show one run: its plan and the result of each step.

    RUN is an id, the beginning of an id, or `last`.
    """
    from nodetune.foundation import json_document
    from nodetune.report.text import runs as text_runs

    found = record.find(run, runs_folder or context.obj)
    if output_format == "json":
        click.echo(json_document.text(text_runs.whole(found)), nl=False)
    else:
        text_runs.print_run(sys.stdout, found, diff)
