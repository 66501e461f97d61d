"""`nodetune slurm`: the guard in Slurm. Its commands are the files of _slurm/, imported only when used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

COMMANDS = Path(__file__).parent / "_slurm"


class Lazy(click.Group):
    """A group that finds its commands by file name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(path.stem for path in COMMANDS.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"nodetune.commands._slurm.{cmd_name}").command
        return command


@click.group("slurm", cls=Lazy)
def command() -> None:
    """Guard Slurm's nodes: a check before each job, and what came of it."""
