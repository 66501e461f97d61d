"""The command line: groups, whose commands are files that are imported when used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import click

DESCRIPTION = re.compile(r'^def command\((?s:.*?)\) -> .*\n    """(.*?)(?:"""|$)', re.MULTILINE)
"""The first line of the docstring of the command in a file."""


class Group(click.Group):
    """A group that proposes commands for a name that it does not have."""

    def names(self, ctx: click.Context) -> Sequence[str]:
        """Return every name that a user may type."""
        return self.list_commands(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raise click.UsageError with similar names."""
        word = args[0]
        if not word.startswith("-") and word not in self.names(ctx):
            close = get_close_matches(word, self.list_commands(ctx), 2) or self._below(ctx, word)
            hint = f"did you mean {' or '.join(close)}?" if close else f"list them with: {ctx.command_path} --help"
            of = f" of {ctx.command_path}" if ctx.parent else ""
            raise click.UsageError(f"unknown command {word!r}{of}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def _below(self, ctx: click.Context, word: str) -> list[str]:  # noqa: ARG002
        """Return the commands of that name which belong to a command of this group."""
        return []


class Folder(Group):
    """A group whose commands are the files of a folder of this package: it imports one when it is used."""

    @property
    def folder(self) -> str:
        return f"commands/_{self.name}"

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(self._files())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by the first lines of their docstrings: to import them all takes a quarter of a second."""
        lines = ((name, DESCRIPTION.search(path.read_text("utf-8"))) for name, path in self._files().items())
        listed = {name: click.Command(name, help=line[1]) for name, line in lines if line}
        click.Group(commands=listed).format_commands(ctx, formatter)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = f"{__name__}.{self.folder.replace('/', '.')}.{cmd_name}"
        command: click.Command = import_module(module).command
        return command

    def _files(self) -> dict[str, Path]:
        return {path.stem: path for path in (Path(__file__).parent / self.folder).glob("[a-z]*.py")}

    def _below(self, ctx: click.Context, word: str) -> list[str]:
        """Return the commands of groups here that have this name; import only the groups that may have one."""
        sources = {name: path.read_text("utf-8") for name, path in self._files().items()}
        likely = (
            self.get_command(ctx, name)
            for name, text in sources.items()
            if "@click.group(" in text and (f'.command("{word}"' in text or "import Folder" in text)
        )
        groups = (each for each in likely if isinstance(each, click.Group) and word in each.list_commands(ctx))
        return sorted(f"{each.name} {word}" for each in groups)
