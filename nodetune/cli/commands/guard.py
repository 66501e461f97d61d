"""`nodetune guard`: a group whose commands are the files in _guard/, imported when used."""

import click

from nodetune.cli import folder


@click.group("guard", cls=folder("nodetune.cli.commands._guard"))
def command() -> None:
    """Keep jobs off bad nodes of Slurm and Kubernetes."""
