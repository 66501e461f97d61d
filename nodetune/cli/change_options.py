"""Options of commands that change hosts: what they ask before, when, in which order, and where the record is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from nodetune.cli import settings
from nodetune.cli.requests import FOLDER, of, stack


def _inside(_context: click.Context, _parameter: click.Parameter, folder: Path | None) -> Path | None:
    """Return the folder of run records. Raise SettingsError where a project's file names one outside its folder."""
    if folder:
        settings.keep_inside("runs_folder", str(folder))
    return folder


runs_folder = click.option(
    "--runs",
    "runs_folder",
    cls=settings.Setting,
    callback=_inside,
    help="Folder of run records. Default: ~/.local/state/nodetune/runs.",
    **FOLDER,
)
same_runs_folder = click.option("--runs", "runs_folder", help="Folder of run records.", **FOLDER)
"""For a command below one that has --runs: settings are for the one above."""

agree = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation. Required without a terminal.")


def waits(request: type[Any]) -> Callable[[Any], Any]:
    """Return the options for the waits of a request, in minutes."""
    told = {"reboot_wait": "Maximum time for a reboot.", "drain_wait": "Maximum time to wait for jobs."}
    return stack(
        *(
            click.option(
                f"--{name.replace('_', '-')}", cls=settings.Setting, metavar="MINUTES", help=text, **of(request, name)
            )
            for name, text in told.items()
            if name in request.__dataclass_fields__
        )
    )


drain = click.option(
    "--drain",
    cls=settings.Setting,
    type=click.Choice(["slurm", "kubernetes"]),
    help="Drain nodes, wait for their jobs, and resume the nodes afterwards. kubernetes: cordon them and evict their pods.",
)
assume_drained = click.option(
    "--assume-drained",
    is_flag=True,
    help="Assume that no scheduler uses the hosts, without querying it.",
)
provision_site = click.option(
    "--site",
    cls=settings.Setting,
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    metavar="FILE",
    help="Site file with repositories and components under `provision`. May be repeated: later files win.",
)


def batches(request: type[Any]) -> Callable[[Any], Any]:
    """Return the options for the batches of a request."""
    return stack(
        click.option(
            "--batch",
            cls=settings.Setting,
            metavar="N|N%",
            help="Number of hosts per batch, or a percentage. Default: all.",
            **of(request, "batch"),
        ),
        click.option(
            "--canary",
            cls=settings.Setting,
            metavar="N",
            help="Number of hosts in the first batch.",
            **of(request, "canary"),
        ),
    )
