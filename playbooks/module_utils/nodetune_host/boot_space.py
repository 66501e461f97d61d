"""Room in /boot for what boots the host: a tool that runs out of space there may lose it."""

import os

from .problem import ChangeError

SPARE = 64 << 10


def require(tool, path, needed=0):
    """Raise ChangeError where the file system of a file has less free space than needed, and some to spare."""
    about = os.statvfs(os.path.dirname(path))
    free, needed = about.f_bavail * about.f_frsize, needed + SPARE
    if free < needed:
        raise ChangeError(
            f"{tool} was not run: it needs {needed >> 10} KiB next to {path}, and {free >> 10} KiB are free. That file is as "
            "it was: free some space, then run the same command again"
        )
