"""Output of a command on standard error except errors: less with -q, more with -v, and the form of progress."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from nodetune.foundation import paths
from nodetune.foundation import text as plain_text

F = TypeVar("F", bound=Callable[..., Any])

AUTO, JSON, NONE = "auto", "json", "none"
"""Ways to show progress (nodetune/cli/progress.py)."""

_PROGRESS = "nodetune.progress"


class _State:
    """The options of the command line, for all threads."""

    verbose = quiet = False
    began = 0.0


_state = _State()


def options(function: F) -> F:
    """Add -v and -q."""
    for words, told in (
        (("-q", "--quiet"), "Print only the result and errors."),
        (("-v", "--verbose"), "Also print what is read from where, and each step of each host with its time."),
    ):
        add = click.option(*words, is_flag=True, is_eager=True, expose_value=False, callback=_take, help=told)
        function = add(function)
    return function


def _choose(context: click.Context, _parameter: click.Parameter, typed: str) -> None:
    context.meta[_PROGRESS] = typed


progress_option = click.option(
    "--progress",
    type=click.Choice([AUTO, JSON, NONE]),
    default=AUTO,
    show_default=True,
    expose_value=False,
    callback=_choose,
    help="Progress on stderr. auto: on a terminal only; json: one event on each line, for programs.",
)


def chosen_progress() -> str:
    """Return how to show progress."""
    context = click.get_current_context(silent=True)
    return str(context.meta.get(_PROGRESS, AUTO)) if context else AUTO


def _take(context: click.Context, parameter: click.Parameter, typed: bool) -> None:
    if __name__ not in context.meta:  # the first of the two: nothing of another command is left
        context.meta[__name__] = True
        _state.verbose, _state.quiet, _state.began = False, False, time.monotonic()
    setattr(_state, str(parameter.name), typed)
    if _state.verbose and _state.quiet:
        raise click.UsageError("-q and -v contradict each other")


def is_verbose() -> bool:
    return _state.verbose


def is_quiet() -> bool:
    return _state.quiet


def note(text: str) -> None:
    """Print a message that is not a result: silent with -q."""
    if not _state.quiet:
        click.echo(paths.as_typed(text), err=True)


def detail(text: str) -> None:
    """Print a message for -v, with the time since the start."""
    if _state.verbose:
        click.echo(f"{time.monotonic() - _state.began:6.1f} s  {plain_text.plain(text)}", err=True)
