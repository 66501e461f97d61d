"""The two ways to carry out a change: for real, written down first, or as a rehearsal that touches nothing."""

import operator
import os
import sys
import traceback

from . import kinds, run
from .problem import ChangeError, StopError, why


class Hands:
    """Does what is decided, and writes it down first."""

    def __init__(self, journal):
        self.journal = journal

    def read(self, change):
        return tried(lens(change).read, change)

    def bring(self, group, change, checks, before, after):
        """Bring the thing into the state `after`. Return (whether anything changed, the problem or "")."""
        number = self.journal.begin_change(group, change, checks, before, after)
        problem, state = "", before
        try:
            tried(lens(change).put, change, after)
        except ChangeError as refused:
            problem = str(refused)
        try:
            state = self.read(change)
        except ChangeError as unreadable:
            problem = problem or str(unreadable)
        if not problem and not same(change, state, after):
            problem = _kept(change, after, state)
        self.journal.end_change(number, state, problem)
        return not same(change, state, before), problem

    def owe(self, group, hooks):
        self.journal.owe(group, hooks)

    def owed(self, hook):
        return self.journal.owed(hook)

    def hook(self, hook):
        problem = ""
        try:
            tried(run.carry_out, hook)
        except ChangeError as failed:
            problem = str(failed)
        self.journal.end_hook(hook, problem)
        return problem

    def forgive(self, hook):
        self.journal.forgive(hook)


class Rehearsal:
    """Does nothing: remembers what would be, so that later changes of the same thing are shown as they would come."""

    def __init__(self, journal):
        self.journal = journal
        self.seen = {}

    def read(self, change):
        key = thing(change)
        return self.seen[key] if key in self.seen else tried(lens(change).read, change)

    def bring(self, group, change, checks, before, after):
        self.seen[thing(change)] = after
        return True, ""

    def owe(self, group, hooks):
        """Do nothing: a dry run writes nothing."""

    def owed(self, hook):
        return self.journal.owed(hook)

    def hook(self, hook):
        return ""

    def forgive(self, hook):
        """Do nothing: a dry run has no pending handlers."""


def lens(change):
    return lens_named(change["change"])


def label_of(change):
    """Name what a change in a journal touched, even if this version no longer knows its kind."""
    found = lens_named(str(change.get("change")))
    return found.label(change) if found else str(change)[:100]


def lens_named(kind):
    """Return the resource module of that name, or None."""
    return getattr(kinds, kind, None) if kind in kinds.__all__ else None


def same(change, one, other):
    return getattr(lens(change), "same", operator.eq)(one, other)


def thing(change):
    """Return the identity of what a change touches, to find other changes of it."""
    kind = "file" if change["change"] == "edit" else change["change"]
    return kind, lens(change).label(change)


def _kept(change, wanted, state):
    """Describe how the state that was read back differs."""
    texts = [lens(change).show(change, one).strip() for one in (wanted, state)]
    if all(text and "\n" not in text for text in texts):
        return f"wrote {texts[0]}, the host kept {texts[1]}"
    return f"{lens(change).label(change)} reads differently after it was written"


def tried(function, *arguments):
    """Call a lens. Raise ChangeError whatever happens there: a fault of ours in one change must not end the others."""
    try:
        return function(*arguments)
    except (ChangeError, StopError):
        raise
    except OSError as error:
        raise ChangeError(f"{error.filename or 'the system'}: {why(error)}") from None
    except Exception as fault:
        place = traceback.extract_tb(sys.exc_info()[2])[-1]
        where = f"{os.path.basename(place.filename)} line {place.lineno}"
        raise ChangeError(
            f"a fault in nodetune ({where}): {type(fault).__name__}: {' '.join(str(fault).split())}"
        ) from None
