"""`nodetune tune`: a group whose commands are the files in _tune/, imported when used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from nodetune.cli import groups

COMMANDS = Path(__file__).parent / "_tune"


class Lazy(groups.Group):
    """A group that finds its commands by file name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(path.stem for path in COMMANDS.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"nodetune.cli.commands._tune.{cmd_name}").command
        return command


@click.group("tune", cls=Lazy)
def command() -> None:
    """Find better settings by measuring, and prove them."""
