"""The pending handlers of a host: {handler: boot in which its change was made}."""

import json
import os

from . import atomic_file
from .problem import NoSpaceError, stopped

FILE = "owed.json"
"""This file and the keys "hook" and "hook_done" of journals keep the names that exist on hosts."""


def load(home, spare=""):
    found = {}
    for folder in filter(None, (home, spare)):
        try:
            with open(os.path.join(folder, FILE), "rb") as opened:
                loaded = json.loads(opened.read().decode("utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        found.update(loaded if isinstance(loaded, dict) else {})
    return found


def save(pending, home, spare=""):
    """Write the pending handlers, in the spare folder if the disk is full. Raise StopError."""
    try:
        _write(pending, home)
    except NoSpaceError:
        if not spare:
            raise
        _write(pending, spare)
    else:
        if spare:
            atomic_file.remove(os.path.join(spare, FILE), "")


def _write(pending, home):
    path = os.path.join(home, FILE)
    try:
        atomic_file.replace(path, json.dumps(pending, sort_keys=True).encode("ascii"), 0o600)
    except OSError as error:
        raise stopped(path, error, "more ") from None
