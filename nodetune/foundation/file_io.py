"""Write a file whole, or not at all. Read one that other users may have put there: never without end, nor through a link or a pipe."""

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial as with_words
from pathlib import Path
from typing import TextIO

from nodetune.foundation import text as plain_text

OWN = 0o600
"""The mode of files with serial numbers."""


def write(path: Path, text: str, mode: int = 0o666) -> None:
    """Replace a file in one step; it gets this mode, less the umask. Raise OSError about this file."""
    with stream(path, mode) as file:
        file.write(text)


def write_bytes(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Replace a file in one step. Raise OSError about this file."""
    with _whole(path) as partial, open(partial, "xb", opener=with_words(_opened, mode=mode)) as file:
        file.write(content)


@contextmanager
def stream(path: Path, mode: int = 0o666) -> Iterator[TextIO]:
    """Open a file that appears only when it is complete. Raise OSError about this file."""
    opener = with_words(_opened, mode=mode)
    with (
        _whole(path) as partial,
        open(partial, "x", encoding="utf-8", errors="backslashreplace", opener=opener) as file,
    ):
        yield file


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give the name of a new file, which takes the place of `path` once it is complete. Raise OSError about `path`."""
    partial = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as problem:
        if problem.filename in (None, str(partial)):  # a full disk names no file; nobody has asked for the partial one
            raise OSError(problem.errno, problem.strerror, str(path)) from None
        raise
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def output(path: Path | None) -> Iterator[TextIO]:
    """Open standard output without a path, else a file that appears when complete. Raise OSError about this file."""
    if path is None:
        yield sys.stdout
    elif path.exists() and not path.is_file():  # a device or a pipe (/dev/stdout, /dev/null): never replaced
        with _naming(path), path.open("w", encoding="utf-8", errors="backslashreplace") as there:
            yield there
    else:
        with stream(path) as file:
            yield file


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an OSError without one, such as that of a full disk."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None and problem.strerror and not isinstance(problem, BrokenPipeError):
            raise OSError(problem.errno, problem.strerror, str(path)) from None
        raise


def _opened(path: str, flags: int, mode: int) -> int:
    """Open a file without following a link that another user may have created."""
    return os.open(path, flags | os.O_NOFOLLOW, mode)


def check(path: Path) -> None:
    """Check early that the file can be written. Raise OSError about it or its folder."""
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    if path.is_file() and not path.is_symlink() and path.stat().st_nlink > 1:
        raise OSError(
            errno.EMLINK,
            "it has other names (hard links), which would keep the old content: remove it first",
            str(path),
        )
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(2, "the folder does not exist", str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "this folder cannot be written to", str(folder))


def read(path: Path, most: int, *, regular: bool = False) -> bytes:
    """Return the content of a file of at most `most` bytes. Raise OSError about this file.

    `regular`: only a plain file is accepted. A link is not followed: it could lead to a file that this user can read
    and its creator cannot. The checks use the open file, so it cannot be replaced in between.
    """
    careful = os.O_NOFOLLOW | os.O_NONBLOCK if regular else 0
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | careful)) as file:
            about = os.fstat(file.fileno())
            fit = about.st_size <= most and (stat.S_ISREG(about.st_mode) or not regular)
            content = file.read(most + 1) if fit else b""
    except OSError as problem:
        if regular and problem.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "a link: links are not followed here", str(path)) from None
        raise
    if regular and not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "not a file", str(path))
    if about.st_size > most or len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {plain_text.size(most)}", str(path))
    return content
