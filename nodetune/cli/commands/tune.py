"""`nodetune tune`: a group whose commands are the files in _tune/, imported when used."""

import click

from nodetune.cli import folder


@click.group("tune", cls=folder("nodetune.cli.commands._tune"))
def command() -> None:
    """Find better settings by measuring, and prove them."""
