"""Where a command writes and in which format: `-o` and `--format`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from nodetune.cli import verbosity
from nodetune.foundation import atomic_file

ENDINGS = {
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".xml": "junit",
    ".prom": "prometheus",
    ".txt": "text",
    ".csv": "csv",
}
"""The format that a file's name asks for, where --format does not say another."""


def _writable(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Check that the file can be written before any host is contacted. Raise OSError."""
    if path:
        atomic_file.check(path)
    return path


def _by_ending(context: click.Context, parameter: click.Parameter, given: str) -> str:
    """Return the format: the given one, else that of the file's ending. Raise click.BadParameter."""
    path = context.params.get("output")
    asked = ENDINGS.get(path.suffix.lower()) if isinstance(path, Path) else None
    if asked is None or context.get_parameter_source(str(parameter.name)) is not ParameterSource.DEFAULT:
        return given
    formats: Sequence[str] = getattr(parameter.type, "choices", ())
    if asked not in formats:
        raise click.BadParameter(f"{path} asks for {asked}, and this command writes {' or '.join(formats)}")
    return asked


def format_option(formats: Sequence[str]) -> Callable[[Any], Any]:
    """Return --format with these formats; the first is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        callback=_by_ending,
        help="Output format. With -o, the ending of the file decides.",
    )


output = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_writable,
    is_eager=True,
    metavar="FILE",
    help="Write to this file instead of standard output.",
)


@contextmanager
def writing(path: Path | None) -> Iterator[TextIO]:
    """Open the file of -o, or standard output. Say on stderr where the file is; raise OSError about it."""
    with atomic_file.output(path) as stream:
        yield stream
    if path and path.is_file():
        verbosity.note(f"written to {path}")
