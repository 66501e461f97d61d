"""Errors of a run, by how much they stop."""

import contextlib
import errno
import json


class ChangeError(Exception):
    """One change cannot be made or undone. One line: what, where, why. The other changes continue."""


class StopError(Exception):
    """Nothing more may be done on this host. One line: what, where, why."""


class NoSpaceError(StopError):
    """The disk has no space for the record that must be written first."""


class WaitError(StopError):
    """A disruptive change must wait, with the reason. Other groups of changes continue."""


@contextlib.contextmanager
def reported(module, result=None):
    """Turn a problem into the failure of an Ansible module, along with the `result` so far."""
    try:
        yield
    except (ChangeError, StopError) as problem:
        module.fail_json(msg=str(problem), **(result.data() if result else {}))


def options(documentation):
    """Return the options of an Ansible module as its DOCUMENTATION describes them: in JSON, which is YAML too."""
    found = json.loads(documentation)["options"]
    return {name: {key: each[key] for key in each if key != "description"} for name, each in found.items()}


def why(error):
    """Return the reason of an OSError in lower case, without its number and path."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def stopped(path, error, more=""):
    """Return the StopError for a journal that cannot be written."""
    kind = NoSpaceError if error.errno in (errno.ENOSPC, errno.EDQUOT) else StopError
    return kind(f"nothing {more}is changed: {path} cannot be written: {why(error)}")
