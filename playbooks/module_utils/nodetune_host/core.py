"""Make changes and roll them back, on any kind of resource.

Each kind is a file in resources/ with these functions:

    read(change) -> state         everything needed to restore the current state (JSON data)
    wanted(change, now) -> state  the wanted state; equal to `now` if there is nothing to do
    put(change, state)            sets the state, for a change and its rollback; raises ChangeError
    show(change, state) -> str    the text for a unified diff
    label(change) -> str          the name of the resource
    place(change) -> str          optional: the real path of a file or folder
    same(state, state) -> bool    optional: whether two states count as equal
    moved_by_kernel(left, now)    optional: whether only the kernel, or a unit of nodetune, changed the state of a run to `now`
    TIMED                         optional: true if a change reverts on its own unless confirmed

A handler ({"change": "run", "run": "daemon-reload"}) has no state: it runs if its group changed something (see handler.py).
"""

from . import unkept
from .executor import attempt, identity, named, place_of, resource_of, same
from .handler import follows, is_due, is_handler, makes_sense_afterwards
from .journal import changes as journaled_changes
from .journal import handlers_of, left, machine_id
from .later import Later, identity_then
from .problem import ChangeError, StopError


class Result:
    """The result of each change, in the form of the module's result."""

    def __init__(self):
        self.diff, self.done, self.problems, self.refused = [], [], [], []
        self.entries = []
        self.journaled = 0
        self.timed = False

    @property
    def changed(self):
        return any(one["changed"] for one in self.done)

    def data(self):
        return dict(vars(self), changed=self.changed)

    def require_all(self):
        """Raise ChangeError unless everything was changed, or reverted."""
        left = [
            one["message"] if one["label"] in one["message"] else f"{one['label']}: {one['message']}"
            for one in self.problems + self.refused
        ]
        if left:
            raise ChangeError("; ".join(dict.fromkeys(left)))


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
        refused = unkept.reason_for(change, due, unwritable) or _without(change, result)
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


def _without(change, result):
    """Return why a change is not made that only keeps what another one (`after`) makes now; empty if that was made."""
    failed = change.get("after") in {problem["label"] for problem in result.problems}
    return f"not written, because {change['after']} was not changed" if failed else ""


def revert(entries, executor, result, force=False, timed=None):
    """Undo the journal's `entries`, last change first. Fill `result`, even if it ends with StopError.

    With `timed`, only the groups with a change that reverts on its own unless confirmed (True), or only the others
    (False).
    """
    _refuse_other_host(entries)
    executor.journal.of = next((entry["run"] for entry in entries if "run" in entry), "")
    done = journaled_changes(entries)
    check([entry["change"] for entry in done])
    _check_states(done)
    links = {entry["group"] for entry in done if _is_timed(entry["change"])}
    groups = [group for group in dict.fromkeys(entry["group"] for entry in done) if timed in (None, group in links)]
    chosen = [entry for entry in reversed(done) if entry["group"] in groups]
    undoing = _Undoing(
        executor, result, force, _states(done), Later(entries, executor.journal, executor.undone), chosen
    )
    for group in reversed(groups):
        undoing.group([entry for entry in chosen if entry["group"] == group], handlers_of(group, entries))


def _check_states(done):
    """Raise StopError before anything is done if the journal has an invalid state."""
    for entry in done:
        try:
            attempt(same, entry["change"], entry["before"], left(entry))
            attempt(_diff, entry["change"], entry["before"], left(entry))
        except ChangeError:
            raise StopError(
                f"the journal is damaged at change {entry['n']} ({_label(entry['change'])}): nothing is undone"
            ) from None


class _Undoing:
    """A rollback. Of a resource that is not brought back completely (`kept`), earlier changes are left alone, too."""

    def __init__(self, executor, result, force, states, later, chosen):
        self.executor, self.result, self.force, self.states, self.later = executor, result, force, states, later
        self.undone, changed_by = _since(later, chosen, executor)
        self.changed_by, self.kept = {} if force else changed_by, set()

    def group(self, entries, handlers):
        """Undo the changes of one group, last first, then run its handlers."""
        keys = [identity_then(entry) for entry in entries]
        later = {key: self.changed_by[key] for key in keys if key in self.changed_by}
        changed = False
        for key, entry in zip(keys, entries):
            if key in self.kept:
                continue
            if key in self.undone:
                _note(self.result, entry["change"], entry.get("checks", []), False)
            elif _moved(entry):
                self.result.refused.append(_moved(entry))
                self.kept.add(key)
            elif later:  # half of a group rolled back (a program without its settings) would break what that run left
                self.result.refused.append(_refusal(entry, self.executor, _needed(key, later)))
                self.kept.add(key)
            else:
                changed = self._one(key, entry, [] if changed else handlers) or changed
        for handler in handlers:
            if (changed or self.executor.is_pending(handler)) and makes_sense_afterwards(handler):
                _run_handler(handler, [], self.executor, self.result)

    def _one(self, key, entry, handlers):
        before = len(self.result.problems), len(self.result.refused)
        states = self.states[entry["n"]]
        if isinstance(states[0], dict) and "folder" in states[0]:
            states = [
                dict(states[0], folder=self.later.folder(states[0], entry["change"].get("path", ""))),
                *states[1:],
            ]
        changed = _restore(entry, self.executor, self.result, self.force, handlers, states, self.later)
        if before != (len(self.result.problems), len(self.result.refused)):
            self.kept.add(key)
        return changed


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


def _restore(entry, executor, result, force, handlers, states, later):
    """Undo one journaled change. `states` are those of the resource up to this change. Return True if the host changed."""
    change, before, checks = entry["change"], entry["before"], entry.get("checks", [])
    if same(change, before, states[0]):
        before = states[0]  # it knows the folders that the run made for the file
    try:
        now = executor.read(change)
    except ChangeError as problem:
        _note(result, change, checks, False, str(problem))
        return False
    as_left = same(change, now, left(entry))
    if same(change, now, states[0]) or (not as_left and any(same(change, now, state) for state in states)):
        _note(result, change, checks, False)
        return False
    by_kernel = getattr(resource_of(change), "moved_by_kernel", lambda *_: False)
    if not (force or as_left or by_kernel(left(entry), now)):
        result.refused.append(_refusal(entry, executor, later.who(entry, now)))
        return False
    if handlers:
        executor.add_pending(entry["group"], handlers)
    return _bring(executor, result, entry["group"], change, checks, now, before)


def _states(done):
    """Return {number of a change: the states of its resource in this run up to the one before it}."""
    found, by_resource = {}, {}
    for entry in done:
        earlier = by_resource.setdefault(identity_then(entry), [])
        found[entry["n"]] = [*earlier, entry["before"]]
        earlier += [entry["before"], left(entry)]
    return found


def _refusal(entry, executor, message):
    """Return what is left alone, with the difference from the run's state."""
    change, expected = entry["change"], left(entry)
    refused = {"checks": entry.get("checks", []), "label": resource_of(change).label(change), "message": message}
    try:
        return {**refused, "diff": _diff(change, expected, executor.read(change), "as the run left it", "now")}
    except ChangeError:
        return {**refused, "diff": {}}


def _since(later, done, executor):
    """Return (the resources that a rollback restored since, {resource: the later run that changed it})."""
    undone, upon = set(), {}
    for key, entry in {identity_then(entry): entry for entry in done}.items():
        try:
            run = "" if _moved(entry) else later.changed_by(entry, executor.read(entry["change"]))
        except ChangeError:
            run = ""
        if later.undone(entry):
            undone.add(key)
        elif run:
            upon[key] = run
    return undone, upon


def _moved(entry):
    """Return the refusal of a file whose path, by a link or folder moved since, leads to another one; else None."""
    then, label = entry.get("place"), _label(entry["change"])
    now = place_of(entry["change"])
    if then in (None, now):
        return None
    message = f"it was {then} in that run and is {now} now: nothing is written there; put the link or folder back first"
    return {"checks": entry.get("checks", []), "label": label, "message": message, "diff": {}, "moved": True}


def _needed(key, later):
    """Return why a resource is kept: a later run changed it, or another one of its group."""
    if key in later:
        return f"changed by run {later[key]} since: roll that back first"
    (_, label), run = next(iter(later.items()))
    return f"kept with {label}, which run {run} changed since: roll that back first"


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
