"""`nodetune tune`: a group whose commands are the files in _tune/, imported when used."""

from __future__ import annotations

import click

from nodetune.cli import Folder


class Commands(Folder):
    """The commands of `nodetune tune`."""

    folder = "commands/_tune"


@click.group("tune", cls=Commands)
def command() -> None:
    """Find better settings by measuring, and prove them."""
