"""The work of the Ansible modules on the host: lock, idle host, then core. The modules only pass on arguments."""

import contextlib
import os
import re

from . import atomic_file, core, idle, journal, lines
from .executor import DryRun, Executor, identity, label_of
from .handler import is_handler
from .journal import Journal
from .later import Later
from .lock import Lock
from .problem import NoSpaceError, StopError, WaitError
from .resources import link

TIME = r"-\d{8}-\d{6}\Z"
"""The end of the name of a playbook's run."""


def begin(run, controller, take_over, check_mode):
    """Take the lock. Return the interrupted runs: [{"run", "since", "did": [labels], "handlers": [not run]}]."""
    Journal(run)
    if check_mode:
        return interrupted(run)
    with Lock(run) as lock:
        lock.take(controller, take_over)
        found = interrupted(run)
        for dead in found:
            _close(dead["run"])
        journal.remove_empty()
        return found


def interrupted(run):
    return [
        _what_it_did(entries) for found, entries in journal.runs() if found.run != run and journal.never_ended(entries)
    ]


def _what_it_did(entries):
    return {
        "run": entries[0]["run"],
        "since": entries[0]["since"],
        "did": [label_of(entry["change"]) for entry in journal.changes(entries)],
        "handlers": journal.handlers_not_run(entries),
    }


def _close(run):
    """Record the end of the run once, and remove what it left half-written."""
    dead = Journal(run)
    for entry in journal.changes(dead.entries()):
        if "done" not in entry and isinstance(entry["change"].get("path"), str):
            _tidy(os.path.realpath(entry["change"]["path"]), entry)
    with contextlib.suppress(NoSpaceError):  # then the next run tells of it again
        dead.end()


def _tidy(path, entry):
    """Remove the half-written file, and the folders made for it or to be removed with it, if they are empty."""
    atomic_file.tidy(path)
    for state in (entry["before"], entry["after"]):
        made = state.get("folder") if isinstance(state, dict) else None
        atomic_file.remove_empty_folders(os.path.dirname(path), made if isinstance(made, str) else "")


@contextlib.contextmanager
def _at_work(run, wanted, spare=""):
    """Hold the lock for this run, and check the host; a refusal also applies to later calls of the run."""
    with Lock(run) as lock:
        lock.keep()
        own = Journal(run, spare=spare)
        try:
            _check(lock, wanted)
            yield own
        except WaitError:
            raise
        except StopError as stop:
            lock.mark(stopped=str(stop))
            raise
        with contextlib.suppress(StopError):
            lock.keep()


def _check(lock, wanted):
    """Check the host. A refusal applies to the rest of the run: a hanging driver costs its minute only once."""
    refused = lock.holder().get("refused") if wanted else ""
    if refused:
        raise WaitError(refused)
    try:
        idle.require(wanted)
    except WaitError as waits:
        lock.mark(refused=str(waits))
        raise


def change(run, group, result):
    with _at_work(run, group["guard"]) as own:
        result.entries = own.added
        core.do(group["changes"], Executor(own), result, group["group"], group["checks"])


def dry_run(run, group, earlier, result):
    """Do a dry run of a group, assuming the states that earlier groups would leave."""
    executor = DryRun(Journal(run))
    core.check(group["changes"])
    touched = {identity(change) for change in group["changes"] if not is_handler(change)}
    for one in earlier:
        idle.require(one.get("guard", {}))
        core.check(one["changes"])
        same = [each for each in one["changes"] if not is_handler(each) and identity(each) in touched]
        core.do(same, executor, core.Result(), one["group"], one.get("checks", []))
    idle.require(group["guard"])
    core.do(group["changes"], executor, result, group["group"], group["checks"])


def revert(given, result, check_mode):
    of = _entries_of(given)
    result.journaled = len(of)
    wanted = _guard_for(given, of)
    if check_mode:
        idle.require(wanted)
        dry = DryRun(Journal(given["run"]))
        for name in given["after"]:
            core.revert(_entries_of(dict(given, of=name, entries=[], least=0)), dry, core.Result(), given["force"])
            dry.undone.add(name)
        core.revert(of, dry, result, given["force"], given["timed"])
        return
    with _at_work(given["run"], wanted, journal.IN_MEMORY) as own:
        result.entries = own.added
        core.revert(of, Executor(own), result, given["force"], given["timed"])


def standing(subject):
    """Return the names of a playbook's runs on this host that are not reverted as a whole, newest first.

    Those with a damaged journal come before: their revert fails, and nothing older is reverted.
    """
    name, found = re.compile(re.escape(subject) + TIME), []
    unread = [run for run in journal.damaged(spare=journal.IN_MEMORY) if name.match(run)]
    for own, entries in journal.runs(spare=journal.IN_MEMORY):
        if name.match(own.run):
            later = Later(entries, Journal(f"{own.run}-next"))
            if not all(map(later.undone, journal.changes(entries))):
                found.append(own.run)
    return unread + found[::-1]


def _entries_of(given):
    """Return the journal of the run that is rolled back: the host's own, or the controller's copy if that has more.

    It has at least as many entries as the controller got from the host (`least`).
    """
    own = Journal(given["of"], spare=journal.IN_MEMORY).entries()
    found = own if len(own) >= len(given["entries"]) else given["entries"]
    if any("withheld" in entry for entry in found):
        raise StopError(
            f"the journal of run {given['of']} is incomplete here, and the copy lacks entries that contained a password: nothing is undone"
        )
    if not all(map(lines.is_sound, found)) or lines.gap(found) is not None:
        raise StopError(f"the controller's copy of the journal of run {given['of']} is damaged: nothing is undone")
    if len(found) < given.get("least", 0):
        raise StopError(
            f"the journal of run {given['of']} has {len(found)} of {given['least']} entries here, and the controller's copy is "
            "damaged: nothing is undone; restore one of them"
        )
    return found


def _guard_for(given, entries):
    """Return the conditions if one of the guarded groups changed something here; else none."""
    touched = {entry["group"] for entry in entries if "change" in entry}
    return given["guard"] if not given["guarded"] or touched & set(given["guarded"]) else {}


def confirm(run):
    """Return the names of the confirmed changes. Raise ChangeError if one has already been undone."""
    with _at_work(run, {}):
        return link.confirm(run)


def end(run):
    with Lock(run) as lock:
        if lock.holder().get("run") != run:
            return
        try:
            Journal(run, spare=journal.IN_MEMORY).end()
        finally:
            lock.release()
