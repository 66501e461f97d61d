"""Make changes and roll them back, on any kind of resource.

Each kind is a file in resources/ with these functions:

    read(change) -> state         everything needed to restore the current state (JSON data)
    wanted(change, now) -> state  the wanted state; equal to `now` if there is nothing to do
    put(change, state)            sets the state, for a change and its rollback; raises ChangeError
    show(change, state) -> str    the text for a unified diff
    label(change) -> str          the name of the resource
    same(state, state) -> bool    optional: whether two states count as equal
    moved_by_kernel(left, now)    optional: whether only the kernel changed the state of a run to `now`
    TIMED                         optional: true if a change reverts on its own unless confirmed

A handler ({"change": "run", "run": "daemon-reload"}) has no state: it runs if its group changed something (see handler.py).
"""

from . import unkept
from .executor import attempt, identity, named, resource_of, same
from .handler import follows, is_due, is_handler, makes_sense_afterwards
from .journal import changes as journaled_changes
from .journal import handlers_of, machine_id, runs
from .problem import ChangeError, StopError


class Result:
    """The result of each change, in the form of the module's result."""

    def __init__(self):
        self.diff, self.done, self.problems, self.refused = [], [], [], []
        self.entries = []
        self.timed = False

    @property
    def changed(self):
        return any(one["changed"] for one in self.done)

    def data(self):
        return {
            "changed": self.changed,
            "diff": self.diff,
            "done": self.done,
            "problems": self.problems,
            "refused": self.refused,
            "entries": self.entries,
            "timed": self.timed,
        }


def check(changes):
    """Raise StopError before anything is done if this version cannot make a list of changes."""
    for number, change in enumerate(changes, 1):
        kind = change.get("change") if isinstance(change, dict) else None
        if not isinstance(kind, str) or not (named(kind) or is_handler(change)):
            raise StopError(f"change {number} has an unknown kind: {str(change)[:100]}")
        try:
            attempt(_label, change)
        except ChangeError:
            raise StopError(f"change {number} lacks a member that kind {kind} needs: {str(change)[:100]}") from None


def do(changes, executor, result, group="", checks=()):
    """Make the changes of one group in order. Fill `result`, even if it ends with StopError."""
    check(changes)
    handlers = [change for change in changes if is_handler(change)]
    pending = [handler for handler in handlers if executor.is_pending(handler)]
    changed, unwritable = set(), unkept.reasons(changes, checks, executor)
    for change in changes:
        due = change.get("checks") or list(checks)
        if is_handler(change):
            if follows(change, changed) or change.get("always") or change in pending or is_due(change, changes):
                _run_handler(change, due, executor, result)
            else:
                executor.drop_pending(change)
            continue
        refused = unkept.reason_for(change, due, unwritable)
        if refused:
            _note(result, change, due, False, refused)
            continue
        try:
            now = executor.read(change)
            after = attempt(resource_of(change).wanted, change, now)
        except ChangeError as problem:
            _note(result, change, due, False, str(problem))
            continue
        if same(change, now, after):
            _note(result, change, due, False)
            continue
        if not changed and handlers:
            executor.add_pending(group, handlers)
        if _bring(executor, result, group, change, due, now, after):
            changed.add(change.get("path"))


def revert(entries, executor, result, force=False, timed=None):
    """Undo the journal's `entries`, last change first. Fill `result`, even if it ends with StopError.

    With `timed`, only the groups with a change that reverts on its own unless confirmed (True), or only the others
    (False).
    """
    _refuse_other_host(entries)
    of = next((entry["run"] for entry in entries if "run" in entry), "")
    done = journaled_changes(entries)
    check([entry["change"] for entry in done])
    links = {entry["group"] for entry in done if _is_timed(entry["change"])}
    groups = [group for group in dict.fromkeys(entry["group"] for entry in done) if timed in (None, group in links)]
    originals = _originals(done)
    for group in reversed(groups):
        handlers = handlers_of(group, entries)
        changed = False
        entries_of_group = [entry for entry in reversed(done) if entry["group"] == group]
        later = "" if force else _built_upon(entries_of_group, executor, of, originals)
        if later:  # half of a group rolled back (a program without its settings) would break what that run left
            result.refused += [
                _refusal(entry, executor, f"changed by run {later} since: roll that back first")
                for entry in entries_of_group
            ]
            continue
        for entry in entries_of_group:
            if _restore(entry, executor, result, force, [] if changed else handlers, originals):
                changed = True
        for handler in handlers:
            if (changed or executor.is_pending(handler)) and makes_sense_afterwards(handler):
                _run_handler(handler, [], executor, result)


def _label(change):
    return change["run"] if is_handler(change) else resource_of(change).label(change)


def _is_timed(change):
    return getattr(resource_of(change), "TIMED", False)


def _bring(executor, result, group, change, checks, now, after):
    """Make one necessary change, with its diff and outcome. Return True if the host has changed."""
    try:
        result.diff.append(attempt(_diff, change, now, after))
    except ChangeError as fault:
        _note(result, change, checks, False, str(fault))
        return False
    changed, problem = executor.put(group, change, checks, now, after)
    _note(result, change, checks, changed, problem)
    result.timed = result.timed or (changed and _is_timed(change))
    return changed


def _run_handler(handler, checks, executor, result):
    problem = executor.run_handler(handler)
    _note(result, handler, checks, not problem, problem)


def _note(result, change, checks, changed, problem=""):
    label = _label(change)
    result.done.append({"checks": checks, "label": label, "changed": changed})
    if problem:
        result.problems.append({"checks": checks, "label": label, "message": problem})


def _originals(entries):
    """Return the state of each resource before the run first changed it: steps in between do not matter."""
    found = {}
    for entry in entries:
        found.setdefault(identity(entry["change"]), entry["before"])
    return found


def _restore(entry, executor, result, force, handlers, originals):
    """Undo one journaled change. Return True if the host has changed."""
    change, before, checks = entry["change"], entry["before"], entry.get("checks", [])
    try:
        now = executor.read(change)
    except ChangeError as problem:
        _note(result, change, checks, False, str(problem))
        return False
    if same(change, now, before) or same(change, now, originals[identity(change)]):
        _note(result, change, checks, False)
        return False
    if not (force or same(change, now, _left(entry)) or _by_kernel(change, _left(entry), now)):
        result.refused.append(_refusal(entry, executor, "changed since by someone else"))
        return False
    if handlers:
        executor.add_pending(entry["group"], handlers)
    return _bring(executor, result, entry["group"], change, checks, now, before)


def _by_kernel(change, left, now):
    return hasattr(resource_of(change), "moved_by_kernel") and resource_of(change).moved_by_kernel(left, now)


def _refusal(entry, executor, message):
    """Return what is left alone, with the difference from the run's state."""
    change, expected = entry["change"], _left(entry)
    refused = {"checks": entry.get("checks", []), "label": resource_of(change).label(change), "message": message}
    try:
        return {**refused, "diff": _diff(change, expected, executor.read(change), "as the run left it", "now")}
    except ChangeError:
        return {**refused, "diff": {}}


def _left(entry):
    """Return the state of a resource at the end of the run."""
    return entry.get("done", entry["after"])


def _built_upon(entries, executor, of, originals):
    """Return the name of a later run that changed one of these resources, or ""."""
    for entry in entries:
        try:
            now = executor.read(entry["change"])
        except ChangeError:
            continue
        known = (_left(entry), entry["before"], originals[identity(entry["change"])])
        untouched = any(same(entry["change"], now, state) for state in known)
        later = "" if untouched else _later_run(entry["change"], now, executor.journal, of)
        if later:
            return later
    return ""


def _later_run(change, now, own, of):
    """Return the name of the run that put the resource into its current state, or ""."""
    for journal, entries in reversed(runs(own.home)):
        for entry in journaled_changes(entries):
            alike = named(entry["change"]["change"]) and identity(entry["change"]) == identity(change)
            if alike and journal.run not in (own.run, of) and same(change, _left(entry), now):
                return journal.run
    return ""


def _refuse_other_host(entries):
    for entry in entries:
        theirs, ours = entry.get("machine"), machine_id()
        if theirs and ours and theirs != ours:
            raise StopError(
                f"this record belongs to another host (machine-id {theirs}, here {ours}): nothing is rolled back"
            )


def _diff(change, before, after, was="before", becomes="after"):
    about = getattr(resource_of(change), "about", None)
    label = resource_of(change).label(change)
    return {
        "before": resource_of(change).show(change, before),
        "after": resource_of(change).show(change, after),
        "before_header": f"{label} ({was}{': ' + about(before) if about else ''})",
        "after_header": f"{label} ({becomes}{': ' + about(after) if about else ''})",
    }
