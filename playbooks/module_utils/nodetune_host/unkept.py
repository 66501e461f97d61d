"""Values that no file would keep: what a group sets now waits for the files that set it at boot."""

import os

from .executor import attempt, resource_of, same
from .handler import is_handler
from .problem import ChangeError, why

FILES = ("file", "edit", "tuned")


def reasons(changes, checks, executor):
    """Return [(checks, why)] of the files of a group that have to change and cannot be written."""
    if all(is_handler(change) or change["change"] in FILES for change in changes):
        return []
    found = []
    for change in changes:
        reason = _unwritable(change["path"]) if change["change"] in FILES and _is_due(change, executor) else ""
        if reason:
            found.append((set(change.get("checks") or checks), reason))
    return found


def reason_for(change, due, known):
    """Return why a change is not made: a file for one of its checks cannot be written; empty if it may be made."""
    if change["change"] in FILES:
        return ""
    return next((reason for checks, reason in known if not due or checks & set(due)), "")


def _is_due(change, executor):
    try:
        now = executor.read(change)
        return not same(change, now, attempt(resource_of(change).wanted, change, now))
    except ChangeError:
        return False  # its own turn tells


def _unwritable(path):
    """Return why neither the file nor its folder can be written (read-only, immutable); empty if they can."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    for each in (folder, target):
        if os.path.exists(each) and not os.access(each, os.W_OK):
            return f"{path} cannot be written: {_refusal(each)}"
    return ""


def _refusal(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | (os.O_TMPFILE if os.path.isdir(path) else 0)))
    except OSError as error:
        return why(error) + (" (is it immutable? lsattr shows it)" if isinstance(error, PermissionError) else "")
    return "permission denied"
