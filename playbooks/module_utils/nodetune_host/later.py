"""The runs after a given one, and what each did to a resource that both changed."""

import contextlib
from typing import NamedTuple, Optional

from .executor import attempt, identity, named, same
from .journal import IN_MEMORY, changes, damaged, left, runs
from .problem import ChangeError


class Run(NamedTuple):
    """A run: the one that it rolled back (None: its journal does not say), each resource's first and last entry.

    `folders`: those that it made.
    """

    name: str
    since: float
    undid: Optional[str]
    made: dict
    folders: frozenset


class Step(NamedTuple):
    """The effect of a run on a resource. `whole`: it restored the state from before the run `undid`."""

    run: str
    undid: str
    whole: bool
    left: object


class Later:
    """The runs of this host after the one with the journal `entries`, without `own`, the run that asks, and those `undone`."""

    def __init__(self, entries, own, undone=()):
        this = _run(entries) if entries else Run("", 0, "", {}, frozenset())
        found = [
            _run(each)
            for journal, each in runs(own.home, IN_MEMORY)
            if journal.run not in (own.run, this.name, *undone)
        ]
        self._damaged = [name for name in damaged(own.home, IN_MEMORY) if name not in (own.run, this.name)]
        self._runs = sorted([this, *found], key=lambda run: run.since)
        self._number = self._runs.index(this)
        self._up_to_this = {run.name for run in self._runs[: self._number + 1]}
        self._of = this.name
        self._folders = frozenset().union(*(run.folders for run in self._runs))

    def folder(self, state, path):
        """Return the topmost folder above a path that the run of its state, or any other run, made; None if there is none.

        A run cannot remove a folder that a later run uses. The later one does, with its own last file there.
        """
        above = [each for each in self._folders | {state.get("folder")} if each and path.startswith(each + "/")]
        return min(above, key=len, default=None)

    def undone(self, entry):
        """Return whether a rollback has brought a resource back to its state before the run, or to an older one.

        Rolling back a rollback is an order to restore the changes of its run, whatever was done in between.
        """
        if self._runs[self._number].undid:
            return False
        undone, begun = set(), set()
        for step in self._steps(entry):
            if step.run in undone:
                continue
            if step.whole and step.run not in begun and step.undid in self._up_to_this:
                return True
            (undone if step.whole else begun).add(step.undid)
        return False

    def changed_by(self, entry, now):
        """Return the name of the run that brought a resource into its state `now` and is not undone, or ""."""
        undone = set()
        for step in self._steps(entry):
            if step.run in undone:
                continue
            if step.whole:
                undone.add(step.undid)
            elif same(entry["change"], step.left, now):
                return "" if step.undid == self._of else step.undid or step.run
        return ""

    def who(self, entry, now):
        """Say who brought a resource into its state `now`, which no later run left."""
        change, key = entry["change"], identity_then(entry)
        for run in self._runs[: self._number]:
            first, last = run.made.get(key, (None, None))
            if first and same(change, first["before"], left(entry)) and same(change, left(last), now):
                return f"changed by run {run.name}, which is dated before it: the clock of this host was set back; force restores the state before both"
        if self._damaged:
            return f"changed since, perhaps by a run with a damaged journal ({', '.join(self._damaged[:3])}): restore that first"
        return "changed since by someone else"

    def _steps(self, entry):
        """Yield what later runs did to a resource, newest first."""
        change, key = entry["change"], identity_then(entry)
        for number in range(len(self._runs) - 1, self._number, -1):
            run = self._runs[number]
            first, last = run.made.get(key, (None, None))
            if not first or same(change, first["before"], left(last)):
                continue
            undid = _undid(self._runs[:number], change, key, first, last) if run.undid is None else run.undid
            yield Step(run.name, undid, bool(undid) and self._is_whole(undid, change, key, last), left(last))

    def _is_whole(self, undid, change, key, last):
        made = next((run.made for run in self._runs if run.name == undid), {})
        wanted = made[key][0]["before"] if key in made else last["after"]
        return "done" in last and same(change, last["done"], wanted)


def identity_then(entry):
    """Return what identified the resource of an entry when it was written."""
    return identity(entry["change"], entry.get("place", ""))


def _run(entries):
    made, folders = {}, set()
    for entry in changes(entries):
        if not named(entry["change"]["change"]):
            continue
        with contextlib.suppress(ChangeError):  # another version's, or damaged
            key = attempt(identity_then, entry)
            attempt(same, entry["change"], entry["before"], left(entry))
            made[key] = made.get(key, (entry,))[0], entry
            folders.add(_folder(entry["before"]))
    return Run(entries[0]["run"], entries[0]["since"], entries[0].get("of"), made, frozenset(folders - {None}))


def _folder(state):
    """Return the topmost folder that was missing before a change; None if none was, or for another kind."""
    found = state.get("folder") if isinstance(state, dict) else None
    return found if isinstance(found, str) else None


def _undid(earlier, change, key, first, last):
    """Return the run whose change of a resource was made backwards, or ""."""
    for run in reversed(earlier):
        its_first, its_last = run.made.get(key, (None, None))
        undone = its_first and same(change, first["before"], left(its_last))
        if undone and same(change, left(last), its_first["before"]):
            return run.name
    return ""
