"""Makes one change by its kind: for real, after a journal entry, or as a dry run that touches nothing.

Ansible sends only modules that an import names, so each kind of resource is named here.
"""

import operator
import os
import sys
import traceback
import types

from . import resources
from .handler import run
from .problem import ChangeError, StopError, why
from .resources import (
    bootarg,
    cpu,
    edit,
    file,
    gpu,
    guarded,
    irqs,
    link,
    module,
    mount,
    program,
    read_ahead,
    slurm,
    swap,
    tuned,
    unit,
    value,
)


class Executor:
    """Makes changes and writes each to the journal first. `undone`: the runs that a dry run has rolled back before."""

    def __init__(self, journal):
        self.journal = journal
        self.undone = set()

    def read(self, change):
        return attempt(resource_of(change).read, change)

    def put(self, group, change, checks, before, after):
        """Bring the resource into the state `after`. Return (whether anything changed, the problem or "")."""
        number = self.journal.begin_change(group, change, checks, before, after, place_of(change))
        problem, state = "", before
        try:
            attempt(resource_of(change).put, change, after)
        except ChangeError as refused:
            problem = str(refused)
        try:
            state = self.read(change)
        except ChangeError as unreadable:
            problem = problem or str(unreadable)
        if not problem and not same(change, state, after):
            problem = _difference(change, after, state)
        self.journal.end_change(number, state, problem)
        return not same(change, state, before), problem

    def add_pending(self, group, handlers):
        self.journal.add_pending(group, handlers)

    def is_pending(self, handler):
        return self.journal.is_pending(handler)

    def drop_pending(self, handler):
        self.journal.drop_pending(handler)

    def run_handler(self, handler):
        """Run a handler. Return the problem or ""."""
        problem = ""
        try:
            attempt(run, handler)
        except ChangeError as failed:
            problem = str(failed)
        self.journal.end_handler(handler, problem)
        return problem


class DryRun(Executor):
    """Changes nothing. It keeps states so that later changes of the same resource show their real effect."""

    def __init__(self, journal):
        Executor.__init__(self, journal)
        self.states = {}

    def read(self, change):
        key = identity(change)
        return self.states[key] if key in self.states else Executor.read(self, change)

    def put(self, group, change, checks, before, after):
        self.states[identity(change)] = after
        return True, ""

    def add_pending(self, group, handlers):
        """Do nothing: a dry run writes nothing."""

    def drop_pending(self, handler):
        """Do nothing: a dry run has no pending handlers."""

    def run_handler(self, handler):
        return ""


def named(kind):
    """Return the module of a kind of resource, or None."""
    found = vars(resources).get(kind)
    return found if isinstance(found, types.ModuleType) else None


def resource_of(change):
    return named(change["change"])


def label_of(change):
    """Name the resource of a change, even if this version does not know its kind."""
    resource = named(str(change.get("change")))
    try:
        return attempt(resource.label, change) if resource else str(change)[:100]
    except ChangeError:
        return str(change)[:100]


def same(change, one, other):
    return getattr(resource_of(change), "same", operator.eq)(one, other)


def identity(change, place=""):
    """Return what identifies the resource of a change, to find other changes of it: `place` was its real path then."""
    kind = "file" if change["change"] in ("edit", "guarded") else change["change"]
    return kind, place or place_of(change) or resource_of(change).label(change)


def place_of(change):
    """Return the real path of a file or folder, without links; "" for other resources."""
    place = getattr(resource_of(change), "place", None)
    return place(change) if place else ""


def attempt(function, *arguments):
    """Call a function of a resource. Raise ChangeError for any error in it: the other changes continue."""
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
            f"an error in nodetune ({where}): {type(fault).__name__}: {' '.join(str(fault).split())}"
        ) from None


def _difference(change, wanted, state):
    """Describe the difference of the state that was read back."""
    resource = resource_of(change)
    texts = [resource.show(change, each).strip() for each in (wanted, state)]
    if all(text and "\n" not in text for text in texts):
        return f"wrote {texts[0]}, but read back {texts[1]}"
    return f"{resource.label(change)} reads differently after it was written"
