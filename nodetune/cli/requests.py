"""From options to requests: a command gets all that it is asked to do as one frozen value.

An option takes its default and its range from the field of the same name. Parts that several options have in common.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from nodetune.cli import Command
from nodetune.foundation import text
from nodetune.foundation.request import RequestError, limits

F = TypeVar("F", bound=Callable[..., Any])


class _NamedPath(click.Path):
    """A path that is not empty: pathlib reads an empty one as the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty: give a file or folder", param, ctx)
        return super().convert(value, param, ctx)


FILE: dict[str, Any] = {"type": _NamedPath(path_type=Path, dir_okay=False), "metavar": "FILE"}
FOLDER: dict[str, Any] = {"type": _NamedPath(path_type=Path, file_okay=False), "metavar": "DIR"}
"""Settings of an option for a path that need not exist."""


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def complete(name: str) -> Callable[..., Any]:
    """Return the function of this name in completion.py, which only a press of Tab needs."""

    def found(*given: Any) -> Any:
        from nodetune.cli import completion

        return getattr(completion, name)(*given)

    return found


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def span(_context: click.Context, _parameter: click.Parameter, typed: str | None) -> int | None:
    """Return the seconds of a duration such as 90s, 30m, 2h or 1d."""
    if typed is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,5})([smhd])", typed)
    if not found:
        raise click.BadParameter(f"{typed!r} is not a duration: use 90s, 30m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def sorted_numbers(_context: click.Context, _parameter: click.Parameter, typed: tuple[int, ...]) -> tuple[int, ...]:
    """Return each number once."""
    return tuple(sorted(set(typed)))


def environment(_context: click.Context, parameter: click.Parameter, typed: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of NAME=VALUE. Raise click.UsageError."""
    for each in typed:
        if not re.fullmatch(r"[A-Za-z_]\w*=.*", each, re.DOTALL):
            raise click.UsageError(f"{parameter.opts[0]} {text.plain(each)}: write NAME=VALUE")
    return dict(each.split("=", 1) for each in typed)


class NumberRange(click.FloatRange):
    """A range that NaN is not in: click compares, and no comparison with NaN holds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        return (
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
            if math.isnan(found)
            else found
        )


BUILT: dict[str, Any] = {}
"""Field → the dataclass of the several options that it is built from. Built last, in this order."""


def command(
    name: str, kind: type[Any], typed: type[Any] | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command that gets its options as `request`, of this dataclass; it gets other options by their names.

    With `typed`, a dataclass too, it gets the options that are fields of that as `typed`, and nothing is built of them.
    """
    return click.command(name, cls=kind_of(kind, typed))


def kind_of(kind: type[Any], typed: type[Any] | None = None) -> type[click.Command]:
    """Return the class of such a command."""
    return type("Command", (_Command,), {"kind": kind, "typed": typed})


class _Command(Command):
    kind: type[Any]
    typed: type[Any] | None

    def invoke(self, ctx: click.Context) -> Any:
        return ctx.invoke(self.callback, **partition(self.kind, ctx.params, self.typed)) if self.callback else None


def of(kind: type[Any], name: str) -> dict[str, Any]:
    """Return what an option takes from a field: its name, default, and range or choices."""
    found = limits(kind, name)
    default = None if found["default"] is MISSING else found["default"]
    taken: dict[str, Any] = {"default": default, "show_default": default not in (None, "")}
    if isinstance(default, bool):
        return {"is_flag": True, "default": default}
    if "choices" in found:
        return {**taken, "type": click.Choice(found["choices"])}
    if "least" in found:
        kind_of_range = click.IntRange if found["whole"] else NumberRange
        return {**taken, "type": kind_of_range(found["least"], found["most"])}
    return taken


def partition(kind: type[Any], parameters: Mapping[str, Any], typed: type[Any] | None = None) -> dict[str, Any]:
    """Return the request and what is left of the options. Raise click.UsageError where they contradict each other."""
    rest = dict(parameters)
    raw = {name: _made(built, rest) for name, built in BUILT.items() if name in kind.__dataclass_fields__}
    if typed:
        rest["typed"] = _made(typed, rest)
    try:
        request = _made(kind, rest)
    except RequestError as problem:
        raise click.UsageError(str(problem), click.get_current_context(silent=True)) from None
    for name, each in raw.items():
        request = replace(request, **{name: each.built()})
    return {"request": request, **rest}


def _made(kind: type[Any], rest: dict[str, Any]) -> Any:
    """Return an instance with the options that are its fields, and remove them from `rest`."""
    given = {each.name: _made(each.metadata["part"], rest) for each in fields(kind) if "part" in each.metadata}
    given |= {each.name: rest.pop(each.name) for each in fields(kind) if each.name in rest}
    return kind(**given)
