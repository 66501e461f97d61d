"""The command line: groups, whose commands are files that are imported when used."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import click


class Group(click.Group):
    """A group that proposes commands for a name that it does not have."""

    def names(self, ctx: click.Context) -> Sequence[str]:
        """Return every name that a user may type."""
        return self.list_commands(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raise click.UsageError with the names that may be meant."""
        word = args[0]
        if not word.startswith("-") and word not in self.names(ctx):
            close = get_close_matches(word, self.list_commands(ctx), 2) or self._below(ctx, word)
            hint = f"did you mean {' or '.join(close)}?" if close else f"list them with: {ctx.command_path} --help"
            of = f" of {ctx.command_path}" if ctx.parent else ""
            raise click.UsageError(f"no command{of} is called {word!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def _below(self, ctx: click.Context, word: str) -> list[str]:
        """Return the commands of that name which belong to a command of this group."""
        groups = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return [
            f"{name} {word}"
            for name, group in groups
            if isinstance(group, click.Group) and word in group.list_commands(ctx)
        ]


class Folder(Group):
    """A group whose commands are the files of a folder of this package: it imports one when it is used."""

    folder = "commands"

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(path.stem for path in (Path(__file__).parent / self.folder).glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = f"{__name__}.{self.folder.replace('/', '.')}.{cmd_name}"
        command: click.Command = import_module(module).command
        return command
