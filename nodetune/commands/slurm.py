"""`nodetune slurm`: the guard in Slurm. Its commands are imported only when used."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "diff": "_slurm_install",
    "install": "_slurm_install",
    "resume": "_slurm_resume",
    "status": "_slurm_status",
    "uninstall": "_slurm_install",
}
"""Command → the module of nodetune.commands whose function of that name it is."""


class Lazy(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"nodetune.commands.{COMMANDS[cmd_name]}"), cmd_name)
        return command


@click.group("slurm", cls=Lazy)
def command() -> None:
    """Guard Slurm's nodes: a check before each job, and what came of it."""
