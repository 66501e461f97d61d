"""A change inside a file that is not ours: {"path", "how", "with"}; `how` names a function of edits.py.

The state is the whole file, as for `file`: what is restored are the bytes that were there.
"""

from .. import edits
from ..problem import ChangeError
from . import file
from .file import about, label, put, read, same, show


def wanted(change, now):
    """Return the file with the edit done. Raise ChangeError if the edit does not understand the file."""
    edit = edits.HOW.get(change["how"])
    if not edit:
        raise ChangeError(f"{change['path']}: no edit is called {change['how']}")
    try:
        return file.edited(now, lambda text: edit(text, **change.get("with", {})))
    except ValueError as error:
        raise ChangeError(f"{change['path']}: {error}") from None
