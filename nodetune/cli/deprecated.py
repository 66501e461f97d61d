"""Words of the previous release. Each still works for one release and prints the new word on stderr."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


COMMANDS: Mapping[str, Sequence[str]] = {"slurm": ("guard",), "taskprolog": ("guard", "taskprolog")}
"""Commands of the previous release, and where they are now."""


def notice(context: click.Context, old: str, new: str) -> None:
    """Print one line on stderr. Silent while a shell completes a command line."""
    if not context.resilient_parsing:
        click.echo(f"nodetune: {old} is now named {new}", err=True)


def alias(
    old: str,
    new: str,
    values: Mapping[str, str | None] | None = None,
    *,
    is_flag: bool = False,
    multiple: bool = False,
) -> Callable[[F], F]:
    """Add the hidden option `old`. `values` maps what it took to what `new` takes; None leaves `new` at its default."""
    return click.option(
        old,
        cls=type("Alias", (_Alias,), {"new": new, "values": values}),
        type=click.Choice(list(values)) if values else None,
        is_flag=is_flag,
        multiple=multiple,
        default=False if is_flag else None,
        hidden=True,
        expose_value=False,
        is_eager=True,
    )


class _Alias(click.Option):
    """An option that passes its value on to another one."""

    new: str
    values: Mapping[str, str | None] | None

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        given = opts.get(str(self.name))
        result = super().handle_parse_result(ctx, opts, args)  # refuses a value that the old word did not take
        if given is not None:
            notice(ctx, self.opts[0], self.new)
            _pass_on(ctx, opts, self.opts[0], self.new, self.values[given] if self.values else given)
        return result


def _pass_on(ctx: click.Context, opts: Mapping[str, Any], old: str, new: str, value: Any) -> None:
    """Give a value to the option `new`, which click processes after eager ones. Raise click.UsageError if it has one."""
    if value is None or not isinstance(opts, MutableMapping):
        return
    target = next(each for each in ctx.command.params if new in each.opts)
    if isinstance(target, Split):
        target.release(ctx, opts)
    if target.multiple and target.name in opts:
        value = [*opts[target.name], *value]
    elif target.name in opts:
        raise click.UsageError(f"{old} is now named {new}: give only {new}", ctx)
    opts[str(target.name)] = value


class Split(click.Option):
    """An option whose name had another meaning: a value that `moved` accepts goes to the option `to`."""

    to: str

    @staticmethod
    def moved(value: str) -> bool:
        raise NotImplementedError

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        self.release(ctx, opts)
        return super().handle_parse_result(ctx, opts, args)

    def release(self, ctx: click.Context, opts: Mapping[str, Any]) -> None:
        """Move a value with the old meaning to the option `to`."""
        given = opts.get(str(self.name))
        if isinstance(given, str) and self.moved(given) and isinstance(opts, MutableMapping):
            del opts[str(self.name)]
            notice(ctx, f"{self.opts[0]} {given}", f"{self.to} {given}")
            _pass_on(ctx, opts, self.opts[0], self.to, given)


class Choice(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """A choice, some of whose values had other names before."""

    def __init__(self, choices: Sequence[str], was: Mapping[str, str]) -> None:
        super().__init__(choices)
        self._was = was

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._was and ctx and param:
            notice(ctx, f"{param.opts[0]} {_quoted(value)}", f"{param.opts[0]} {self._was[value]}")
            value = self._was[value]
        return super().convert(value, param, ctx)


def _quoted(value: str) -> str:
    return f"'{value}'" if " " in value else value
