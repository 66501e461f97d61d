"""Writing a file whole, or not at all. Standard library only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write(path: Path, text: str) -> None:
    """Replace a file in one step; a new one has the mode that the user's umask gives. Raises OSError, about this file."""
    with stream(path) as file:
        file.write(text)


@contextmanager
def stream(path: Path) -> Iterator[TextIO]:
    """A stream into a file that appears only when it is whole. Raises OSError, about this file."""
    partial = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "x", encoding="utf-8", errors="backslashreplace", opener=_opened) as file:
            yield file
        partial.replace(path)
    except OSError as problem:
        if problem.filename in (
            None,
            str(partial),
        ):  # a full disk names no file, and the partial one nobody has asked for
            raise OSError(problem.errno, problem.strerror, str(path)) from None
        raise
    finally:
        partial.unlink(missing_ok=True)


def _opened(path: str, flags: int) -> int:
    """Never through a link that somebody else has put there."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def check(path: Path) -> None:
    """That a file can be written there, before what is to be in it is worked for. Raises OSError, about its folder."""
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(2, "there is no such folder", str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "this folder cannot be written to", str(folder))
