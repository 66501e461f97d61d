"""A change inside a file that is not ours: {"path", "how", "with"}; `how` names a function of edits.py.

The state is the whole file, as for `file`: what is restored are the bytes that were there.
"""

from . import edits, file
from .problem import Problem

read = file.read
put = file.put
same = file.same
show = file.show
about = file.about
label = file.label


def wanted(change, now):
    """The file with the edit done. Raises Problem where the edit does not understand the file."""
    edit = edits.HOW.get(change["how"])
    if not edit:
        raise Problem(f"{change['path']}: no edit is called {change['how']}")
    try:
        return file.edited(now, lambda text: edit(text, **change.get("with", {})))
    except ValueError as error:
        raise Problem(f"{change['path']}: {error}") from None
