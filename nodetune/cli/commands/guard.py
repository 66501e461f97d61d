"""`nodetune guard`: a group whose commands are the files in _guard/, imported when used."""

from __future__ import annotations

import click

from nodetune.cli import Folder


class Commands(Folder):
    """The commands of `nodetune guard`."""

    folder = "commands/_guard"


@click.group("guard", cls=Commands)
def command() -> None:
    """Check Slurm nodes before each job."""
