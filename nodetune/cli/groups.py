"""Groups of commands that say which command may be meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

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
            close = get_close_matches(word, self.list_commands(ctx), 2)
            hint = f"did you mean {' or '.join(close)}?" if close else f"list them with: {ctx.command_path} --help"
            of = f" of {ctx.command_path}" if ctx.parent else ""
            raise click.UsageError(f"no command{of} is called {word!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)
