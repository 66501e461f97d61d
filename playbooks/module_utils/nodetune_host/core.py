"""Makes changes and takes them back: generic over the kinds of change, each of which is a *lens* in a file of its name.

    read(change) -> state         all that is needed to restore what is there now (JSON data)
    wanted(change, now) -> state  how it is to be; equal to `now` when there is nothing to do
    put(change, state)            brings it there, for doing and for undoing alike; raises ChangeError
    show(change, state) -> str    the text for a unified diff
    label(change) -> str          what is touched
    same(state, state) -> bool    optional: when two states count as equal
    moved_by_kernel(left, now)    optional: true when nobody but the kernel made `now` of what a run left
    TIMED                         optional: true when a change reverts by itself unless confirmed

A hook ({"change": "run", "run": "daemon-reload"}) has no state: it is run when its group changed something.
"""

from . import run
from .hands import Hands, Rehearsal, lens, lens_named, same, thing, tried
from .journal import changes as journaled_changes
from .journal import machine_id, runs
from .problem import ChangeError, StopError


class Result:
    """What became of each change, in the words of the module's result."""

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
    """Raise StopError if a list of changes is none that this version can carry out: before anything is done."""
    for number, change in enumerate(changes, 1):
        kind = change.get("change") if isinstance(change, dict) else None
        found = lens_named(kind) if isinstance(kind, str) else None
        if not found:
            raise StopError(f"change {number} is of no known kind: {str(change)[:100]}")
        try:
            tried(found.label, change)
        except ChangeError:
            raise StopError(f"change {number} lacks what a change of kind {kind} needs: {str(change)[:100]}") from None


def do(changes, hands, result, group="", checks=()):
    """Make the changes of one group, in their order. Fills `result`, also when it ends with StopError."""
    check(changes)
    hooks = [change for change in changes if _is_hook(change)]
    late = [hook for hook in hooks if hands.owed(hook)]
    changed = False
    for change in changes:
        due = change.get("checks") or list(checks)
        if _is_hook(change):
            if changed or change.get("always") or change in late:
                _run_hook(change, due, hands, result)
            else:
                hands.forgive(change)
            continue
        try:
            now = hands.read(change)
            after = tried(lens(change).wanted, change, now)
        except ChangeError as problem:
            _note(result, change, due, False, str(problem))
            continue
        if same(change, now, after):
            _note(result, change, due, False)
            continue
        if not changed and hooks:
            hands.owe(group, hooks)
        changed = _bring(hands, result, group, change, due, now, after) or changed


def revert(entries, hands, result, force=False, timed=None):
    """Take back what the journal's `entries` did, last things first. Fills `result`, also when it ends with StopError.

    With `timed` only the groups with a change that reverts by itself unless confirmed (True), or only the others (False).
    """
    _refuse_other_host(entries)
    of = next((entry["run"] for entry in entries if "run" in entry), "")
    done = journaled_changes(entries)
    check([entry["change"] for entry in done])
    links = {entry["group"] for entry in done if _is_timed(entry["change"])}
    groups = [group for group in dict.fromkeys(entry["group"] for entry in done) if timed in (None, group in links)]
    originals = _originals(done)
    for group in reversed(groups):
        hooks = _hooks_of(group, entries)
        owed = False
        entries_of_group = [entry for entry in reversed(done) if entry["group"] == group]
        later = "" if force else _built_upon(entries_of_group, hands, of, originals)
        if later:  # half of a group taken back (a program without its settings) would break what that run left
            result.refused += [
                _refusal(entry, hands, f"changed by run {later} since: roll that back first")
                for entry in entries_of_group
            ]
            continue
        for entry in entries_of_group:
            if _take_back(entry, hands, result, force, [] if owed else hooks, originals):
                owed = True
        for hook in hooks:
            if (owed or hands.owed(hook)) and run.makes_sense_afterwards(hook):
                _run_hook(hook, [], hands, result)


def _is_hook(change):
    return change["change"] == "run"


def _is_timed(change):
    return getattr(lens(change), "TIMED", False)


def _bring(hands, result, group, change, checks, now, after):
    """Make one change that is due, with its diff and outcome. Return True if the host is different now."""
    try:
        result.diff.append(tried(_diff, change, now, after))
    except ChangeError as fault:
        _note(result, change, checks, False, str(fault))
        return False
    changed, problem = hands.bring(group, change, checks, now, after)
    _note(result, change, checks, changed, problem)
    result.timed = result.timed or (changed and _is_timed(change))
    return changed


def _run_hook(hook, checks, hands, result):
    problem = hands.hook(hook)
    _note(result, hook, checks, not problem, problem)


def _note(result, change, checks, changed, problem=""):
    label = lens(change).label(change)
    result.done.append({"checks": checks, "label": label, "changed": changed})
    if problem:
        result.problems.append({"checks": checks, "label": label, "message": problem})


def _originals(entries):
    """Return the state of each resource before the run first changed it: if restored, no step between matters."""
    found = {}
    for entry in entries:
        found.setdefault(thing(entry["change"]), entry["before"])
    return found


def _take_back(entry, hands, result, force, hooks, originals):
    """Undo one journaled change. True when the host is different now."""
    change, before, checks = entry["change"], entry["before"], entry.get("checks", [])
    try:
        now = hands.read(change)
    except ChangeError as problem:
        _note(result, change, checks, False, str(problem))
        return False
    if same(change, now, before) or same(change, now, originals[thing(change)]):
        _note(result, change, checks, False)
        return False
    if not (force or same(change, now, _left(entry)) or _by_kernel(change, _left(entry), now)):
        result.refused.append(_refusal(entry, hands, "changed since by somebody else"))
        return False
    if hooks:
        hands.owe(entry["group"], hooks)
    return _bring(hands, result, entry["group"], change, checks, now, before)


def _by_kernel(change, left, now):
    return hasattr(lens(change), "moved_by_kernel") and lens(change).moved_by_kernel(left, now)


def _refusal(entry, hands, message):
    """Return what is left alone, and how it differs from what the run left."""
    change, expected = entry["change"], _left(entry)
    told = {"checks": entry.get("checks", []), "label": lens(change).label(change), "message": message}
    try:
        return {**told, "diff": _diff(change, expected, hands.read(change), "as the run left it", "now")}
    except ChangeError:
        return {**told, "diff": {}}


def _left(entry):
    """Return the state in which the run left a resource."""
    return entry.get("done", entry["after"])


def _built_upon(entries, hands, of, originals):
    """Return the name of a later run that changed one of these resources, or ""."""
    for entry in entries:
        try:
            now = hands.read(entry["change"])
        except ChangeError:
            continue
        known = (_left(entry), entry["before"], originals[thing(entry["change"])])
        untouched = any(same(entry["change"], now, state) for state in known)
        later = "" if untouched else _later_run(entry["change"], now, hands.journal, of)
        if later:
            return later
    return ""


def _later_run(change, now, own, of):
    """Return the name of the run that put the resource into its current state, or ""."""
    for journal, entries in reversed(runs(own.home)):
        for entry in journaled_changes(entries):
            alike = lens_named(entry["change"]["change"]) and thing(entry["change"]) == thing(change)
            if alike and journal.run not in (own.run, of) and same(change, _left(entry), now):
                return journal.run
    return ""


def _hooks_of(group, entries):
    """Return the handlers of a group, each once, in the order in which they were due."""
    hooks = [entry["hook"] for entry in entries if "hook" in entry and entry["group"] == group]
    return list({hook["run"]: hook for hook in hooks}.values())


def _refuse_other_host(entries):
    for entry in entries:
        theirs, ours = entry.get("machine"), machine_id()
        if theirs and ours and theirs != ours:
            raise StopError(f"this record is of another host (machine-id {theirs}, here {ours}): nothing is taken back")


def _diff(change, before, after, was="before", becomes="after"):
    about = getattr(lens(change), "about", None)
    label = lens(change).label(change)
    return {
        "before": lens(change).show(change, before),
        "after": lens(change).show(change, after),
        "before_header": f"{label} ({was}{': ' + about(before) if about else ''})",
        "after_header": f"{label} ({becomes}{': ' + about(after) if about else ''})",
    }
