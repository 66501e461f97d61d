"""Read files that other users may have put there: never without end, and never through a link or a pipe."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from nodetune.foundation import text


def read(path: Path, most: int, *, regular: bool = False) -> bytes:
    """Return the content of a file of at most `most` bytes. Raises OSError, about this file.

    `regular`: only a plain file counts. A link is not followed: it could lead to what this user can read and its maker
    cannot. What is looked at is what was opened, so nobody can put something else there in between.
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
        raise OSError(errno.EFBIG, f"larger than {text.size(most)}", str(path))
    return content
