"""Small files of /proc and /sys, and open files that are written to the end. Facts are read with a bound: probe/read.py."""

import os


def text(path):
    """Return the content without surrounding blanks; empty if it cannot be read."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def number(path):
    """Return the whole number in a file; None if it cannot be read, or is another text or less than zero."""
    content = text(path)
    return int(content) if content.isdigit() else None


def names(folder):
    """Return the sorted names in a folder; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def write_all(handle, data):
    """Write all of it. Raise OSError."""
    while data:
        data = data[os.write(handle, data) :]


def append(handle, data, sync=False):
    """Add to an open file, all or nothing; with `sync` it is on the disk afterwards. Raise OSError."""
    size = os.lseek(handle, 0, os.SEEK_END)
    try:
        write_all(handle, data)
        if sync:
            os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise
