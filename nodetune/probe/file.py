"""The content of files that a site requests by path: `file.PATH`."""

from . import read

MAX_BYTES = 65536


def collect(names, step):
    for path in names:
        step(path)
        try:
            yield path, read.value(read.text(path, MAX_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            yield path, read.absent("no such file")
        except OSError as problem:
            yield path, read.unread("{}: {}".format(path, read.why(problem)))
