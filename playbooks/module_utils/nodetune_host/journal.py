"""The changes of a run on this host, recorded before they are made: one JSON line each, never rewritten.

{"run", "since", "machine", "boot", "of"}                 head, before the first change; "of": the run that it rolls back
{"n", "group", "change", "checks", "before", "after", "place"}   about to change it from `before` to `after`; a file's
                                                          real path is its place
{"n", "ok": true} or {"n", "done": state, "problem"}      the state read back: `after`, or something else
{"group", "hook"}                                         a handler that will run after the changes of the group
{"hook_done", "problem"}                                  a handler was run
{"ended": seconds}

Each line also has "sum", a checksum of the sum before it and the rest of the line: a line that is missing shows. The
first version wrote neither that nor "of", the second a checksum of the line alone.
"""

import contextlib
import json
import os
import re
import time

from . import atomic_file, pending
from .lines import checksum, gap, parsed_line
from .onhost import files
from .problem import NoSpaceError, StopError, stopped, why

HOME = "/var/lib/nodetune"
IN_MEMORY = "/run/nodetune/journals"
"""Where a rollback continues its journal if the disk is full. The controller has a copy, as of all journals."""

RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
LEAST_SECONDS = 1e-3
PRIVATE = 0o700
"""Journals contain configuration files and are readable by root only."""

LASTING = ("update-grub", "initramfs")
"""Handlers that a reboot does not replace."""

RESTORE = "restore it or move it away (a rollback then uses the controller's copy)"
TORN = b"\0\0"
"""The remains of unsynced lines after a power cut. A single null is a damaged byte."""


class Journal:
    """The journal of one run on this host. Nothing is created before the first entry.

    It continues in `spare` if the disk is full; without one, nothing more is changed then.
    """

    def __init__(self, run, home="", spare=""):
        if not RUN_NAME.match(run):
            raise StopError(f"{run[:100]!r} is not a valid run name: use letters, digits, dot, dash, underscore")
        self.run, self.home, self.spare = run, home or HOME, spare
        self.of = ""
        self.added = []
        self._handle = None
        self._next, self._chain = 0, ""
        self._lie_in(self.home)

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            os.close(self._handle)

    def _lie_in(self, home):
        self.folder = os.path.join(home, "runs", self.run)
        self.path = os.path.join(self.folder, "journal.jsonl")

    def entries(self):
        """Return all entries; empty if the run changed nothing here. A last line cut by a power failure is left out."""
        return self._read()[0] + (self._in_memory().entries() if self.spare else [])

    def _in_memory(self):
        return Journal(self.run, self.spare)

    def _read(self):
        """Return the complete entries and their number of bytes in the file."""
        self._chain = ""
        try:
            with open(self.path, "rb") as opened:
                content = opened.read()
        except FileNotFoundError:
            return [], 0
        except OSError as error:
            raise StopError(f"{self.path} cannot be read: {why(error)}") from None
        if not content:  # its first line is there from its begin
            raise StopError(f"{self.path} is empty: what run {self.run} changed is unknown; {RESTORE}")
        *lines, rest = content.split(b"\n")
        parsed, chain = [], ""
        for line in lines:
            entry, chain = parsed_line(line, chain)
            parsed.append(entry)
        while parsed and parsed[-1] is None and TORN in lines[len(parsed) - 1]:
            parsed.pop()
        if len(parsed) == len(lines) and parsed_line(rest[:-1], chain)[0]:  # its last byte was the end of the line
            parsed.append(None)
        line = parsed.index(None) if None in parsed else gap(parsed)
        if line is not None or (parsed and "since" not in parsed[0]):
            raise StopError(f"{self.path} is damaged at line {(line or 0) + 1}: {RESTORE}")
        self._chain = chain
        return parsed, sum(len(line) + 1 for line in lines[: len(parsed)])

    def begin_change(self, group, change, checks, before, after, place=""):
        """Record the next change, safe against a power cut; `place` is its real path. Return its number."""
        self._open()
        number = self._next
        self._next += 1
        entry = {"n": number, "group": group, "change": change, "checks": checks, "before": before, "after": after}
        self._append(dict(entry, place=place) if place else entry, safe=True)
        return number

    def end_change(self, number, state, problem=""):
        self._append({"n": number, "done": state, "problem": problem} if problem else {"n": number, "ok": True})

    def add_pending(self, group, handlers):
        """Record the handlers that must run after the changes of a group. A later run makes up for missed ones."""
        self._open()
        for handler in handlers:
            self._append({"group": group, "hook": handler})
        found = self._pending()
        found.update({handler["run"]: boot_id() for handler in handlers})
        pending.save(found, self.home, self.spare)

    def is_pending(self, handler):
        """Return whether an earlier run ended between a change and this handler."""
        boot = self._pending().get(handler["run"])
        return boot is not None and (handler["run"] in LASTING or boot == boot_id())

    def end_handler(self, handler, problem=""):
        self._open()
        self._append({"hook_done": handler["run"], "problem": problem} if problem else {"hook_done": handler["run"]})
        if not problem:
            self.drop_pending(handler)

    def drop_pending(self, handler):
        """Remove a pending handler that was run or that nothing needs."""
        found = self._pending()
        if found.pop(handler["run"], None) is not None:
            pending.save(found, self.home, self.spare)

    def _pending(self):
        return pending.load(self.home, self.spare)

    def end(self):
        """Mark the run as ended, if it changed anything."""
        if never_ended(self.entries()):
            self._open()
            self._append({"ended": int(time.time())}, safe=True)

    def _append(self, entry, safe=False):
        try:
            self._write(entry, safe)
        except NoSpaceError:
            self._go_on_in_memory()
            self._write(entry, safe)

    def _write(self, entry, safe):
        as_read = json.loads(json.dumps(entry))  # numbers that are keys come back as texts, and sort otherwise
        chain = checksum(as_read, self._chain)
        data = json.dumps(dict(as_read, sum=chain), sort_keys=True).encode("ascii") + b"\n"
        try:
            if self._handle is None:
                atomic_file.replace(self.path, data, 0o600)
            else:
                files.append(self._handle, data, safe)
        except OSError as error:
            raise stopped(self.path, error, "" if self._handle is None else "more ") from None
        self._chain = chain
        self.added.append(entry)

    def _open(self):
        if self._handle is not None:
            return
        try:
            if self.spare and self._in_memory().entries():
                raise NoSpaceError
            self._start()
        except NoSpaceError:
            self._go_on_in_memory()

    def _go_on_in_memory(self):
        """Continue in the spare folder. Call it in a handler of NoSpaceError, which it raises without such a folder."""
        if not self.spare or self.folder.startswith(self.spare):
            raise  # noqa: PLE0704
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self._lie_in(self.spare)
        self._start()

    def _start(self):
        earlier, whole = self._read()
        self._next = max([self._next] + [entry["n"] + 1 for entry in earlier if "n" in entry])
        made = atomic_file.missing_folder(self.path)
        try:
            atomic_file.make_folders(self.folder, PRIVATE)
            if not earlier:
                latest = max((entries[0]["since"] for _, entries in runs(self.home, self.spare)), default=0)
                since = max(time.time(), latest + LEAST_SECONDS)  # in order, also if the clock was set back
                self._write(
                    {"run": self.run, "since": since, "machine": machine_id(), "boot": boot_id(), "of": self.of}, True
                )
                whole = os.path.getsize(self.path)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._handle, whole)
            atomic_file.sync_folder(self.folder)
        except (OSError, StopError) as error:
            atomic_file.remove_empty_folders(self.folder, made)
            if isinstance(error, StopError):
                raise
            raise stopped(self.path, error) from None


def runs(home="", spare=""):
    """Return [(journal, its entries), …] of this host, oldest first, without damaged ones. Ignore foreign folders."""
    return _runs(home, spare)[0]


def damaged(home="", spare=""):
    """Return the names of the runs of this host whose journal cannot be read, newest first by their names."""
    return sorted(_runs(home, spare)[1], reverse=True)


def _runs(home, spare):
    found, unread, names = [], [], set()
    for folder in filter(None, (home or HOME, spare)):
        with contextlib.suppress(OSError):
            names.update(os.listdir(os.path.join(folder, "runs")))
    for name in filter(RUN_NAME.match, names):
        journal = Journal(name, home, spare)
        try:
            entries = journal.entries()
        except StopError:
            unread.append(name)
            continue
        if entries and "since" in entries[0]:
            found.append((entries[0]["since"], journal, entries))
    return [(journal, entries) for _, journal, entries in sorted(found, key=lambda one: one[0])], unread


def remove_empty(home=""):
    """Remove the folders of runs that were killed before their first entry."""
    runs_folder = os.path.join(home or HOME, "runs")
    for name in os.listdir(runs_folder) if os.path.isdir(runs_folder) else ():
        path = os.path.join(runs_folder, name, "journal.jsonl")
        atomic_file.tidy(path)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))


def never_ended(entries):
    return bool(entries) and "ended" not in entries[-1]


def changes(entries):
    """Return the entries of changes, each with the state read back (`done`), if known."""
    found = {}
    for entry in entries:
        if "change" in entry:
            found[entry["n"]] = dict(entry)
        elif entry.get("n") in found:
            made = found[entry["n"]]
            made["done"] = made["after"] if "ok" in entry else entry["done"]
    return [found[number] for number in sorted(found)]


def left(entry):
    """Return the state of a resource after a change."""
    return entry.get("done", entry["after"])


def handlers_of(group, entries):
    """Return the handlers of a group, each once, in their order."""
    found = [entry["hook"] for entry in entries if "hook" in entry and entry["group"] == group]
    return list({handler["run"]: handler for handler in found}.values())


def handlers_not_run(entries):
    """Return the names of the handlers that a run did not reach."""
    due = [entry["hook"]["run"] for entry in entries if "hook" in entry]
    done = [entry["hook_done"] for entry in entries if "hook_done" in entry]
    return [name for name in dict.fromkeys(due) if name not in done]


def machine_id():
    return files.text("/etc/machine-id")


def boot_id():
    return files.text("/proc/sys/kernel/random/boot_id")
