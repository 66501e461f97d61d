"""Options of commands that change hosts: what is asked before, when, in which order, and where the record is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune.cli import settings
from nodetune.cli.host_options import stack

_RUNS: dict[str, Any] = {"type": click.Path(path_type=Path, file_okay=False), "metavar": "DIR"}
runs_folder = settings.option(
    "--runs", "runs_folder", help="Folder of run records. Default: ~/.local/state/nodetune/runs.", **_RUNS
)
same_runs_folder = click.option("--runs", "runs_folder", help="Folder of run records.", **_RUNS)
"""For a command below one that has --runs: settings are for the one above."""

agree = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation. Required without a terminal.")


def _minutes(least: float, most: float, default: float) -> dict[str, Any]:
    return {"type": click.FloatRange(least, most), "default": default, "show_default": True, "metavar": "MINUTES"}


reboot_wait = settings.option("--reboot-wait", **_minutes(0.5, 1440, 30), help="Maximum time for a reboot.")
drain_wait = settings.option("--drain-wait", **_minutes(0, 10080, 60), help="Maximum time to wait for jobs.")
drain = settings.option(
    "--drain", type=click.Choice(["slurm"]), help="Drain nodes, wait for their jobs, and resume the nodes afterwards."
)
assume_drained = click.option(
    "--assume-drained",
    is_flag=True,
    help="Assume that no scheduler uses the hosts, without asking it.",
)
provision_site = settings.option(
    "--site",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    metavar="FILE",
    help="Site file with repositories and components under `provision`. May be repeated: later files win.",
)


batches = stack(
    settings.option(
        "--batch", default="", metavar="N|N%", help="Number of hosts per batch, or a percentage. Default: all."
    ),
    settings.option(
        "--canary",
        type=click.IntRange(0),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of hosts in the first batch.",
    ),
)
