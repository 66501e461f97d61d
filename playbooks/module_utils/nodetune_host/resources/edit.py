"""A change in a file that others own: {"path", "how", "with"}; `how` names a function of edits.py.

The state is the whole file, as for `file`: a rollback restores its bytes.
"""

from .. import edits
from ..problem import ChangeError
from . import file
from .file import about, label, place, put, read, same, show


def wanted(change, now):
    """Return the edited file. Raise ChangeError if the edit cannot parse the file."""
    edit = edits.HOW.get(change["how"])
    if not edit:
        raise ChangeError(f"{change['path']}: unknown edit {change['how']}")
    try:
        return file.edited(now, lambda text: edit(text, **change.get("with", {})))
    except ValueError as error:
        raise ChangeError(f"{change['path']}: {error}") from None
