"""Writing a file whole, or not at all. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write(path: Path, text: str) -> None:
    """Replace a file in one step; a new one has the mode that the user's umask gives. Raises OSError."""
    with stream(path) as file:
        file.write(text)


@contextmanager
def stream(path: Path) -> Iterator[TextIO]:
    """A stream into a file that appears only when it is whole. Raises OSError."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
