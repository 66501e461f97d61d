"""What a run does to this host, written down before it is done: one JSON line each, never rewritten.

{"run", "since", "machine", "boot"}                       head, when the run changes its first thing
{"n", "group", "change", "checks", "before", "after"}     about to bring the thing from `before` to `after`
{"n", "ok": true} or {"n", "done": state, "problem"}      what was read back: `after`, or something else
{"group", "hook"}                                         a handler that will run after the changes of the group
{"hook_done", "problem"}                                  a handler was run
{"ended": seconds}
"""

import json
import os
import re
import time

from . import atomic_file
from .problem import StopError, why

HOME = "/var/lib/nodetune"
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
PRIVATE = 0o700
"""Journals have the content of configuration files: they are for root only."""

LASTING = ("update-grub", "initramfs")
"""Handlers that a reboot does not replace."""

PENDING = "owed.json"
"""The pending handlers. This file and the keys "hook" and "hook_done" keep the names that hosts already have."""


class Journal:
    """The journal of one run on this host. Nothing is created before the first entry."""

    def __init__(self, run, home=""):
        if not RUN_NAME.match(run):
            raise StopError(f"{run[:100]!r} is no name of a run: letters, digits, dot, dash, underscore")
        self.run, self.home = run, home or HOME
        self.folder = os.path.join(self.home, "runs", run)
        self.path = os.path.join(self.folder, "journal.jsonl")
        self.added = []
        self._handle = None
        self._next = None

    def entries(self):
        """Return all entries; none if the run changed nothing here. A last line torn by a power cut is left out."""
        return self._read()[0]

    def _read(self):
        """Return the complete entries, and how many bytes of the file they take."""
        try:
            with open(self.path, "rb") as opened:
                lines = opened.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return [], 0
        except OSError as error:
            raise StopError(f"{self.path} cannot be read: {why(error)}") from None
        parsed = [_parsed(line) for line in lines]
        while parsed and parsed[-1] is None:
            parsed.pop()
        if None in parsed:
            raise StopError(f"{self.path} is damaged at line {parsed.index(None) + 1}: restore it or move it away")
        return parsed, sum(len(line) + 1 for line in lines[: len(parsed)])

    def begin_change(self, group, change, checks, before, after):
        """Write down what is about to be done, safe against a power cut. Return its number."""
        self._open()
        number = self._next
        self._next += 1
        entry = {"n": number, "group": group, "change": change, "checks": checks, "before": before, "after": after}
        self._append(entry, safe=True)
        return number

    def end_change(self, number, state, problem=""):
        self._append({"n": number, "done": state, "problem": problem} if problem else {"n": number, "ok": True})

    def add_pending(self, group, handlers):
        """Record the handlers that must run after the changes of a group. A later run runs those that did not."""
        self._open()
        for handler in handlers:
            self._append({"group": group, "hook": handler})
        pending = self._pending()
        pending.update({handler["run"]: boot_id() for handler in handlers})
        self._save_pending(pending)

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
        """Remove a pending handler: it was run, or nothing changed."""
        pending = self._pending()
        if pending.pop(handler["run"], None) is not None:
            self._save_pending(pending)

    def end(self):
        """Mark the run as ended, if it changed anything."""
        if never_ended(self.entries()):
            self._open()
            self._append({"ended": int(time.time())}, safe=True)

    def _append(self, entry, safe=False):
        data = json.dumps(entry, sort_keys=True).encode("ascii") + b"\n"
        start = os.lseek(self._handle, 0, os.SEEK_END)
        try:
            left = data
            while left:
                left = left[os.write(self._handle, left) :]
            if safe:
                os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, start)
            more = "more " if start else ""
            raise StopError(f"nothing {more}is changed: {self.path} cannot be written: {why(error)}") from None
        self.added.append(entry)

    def _open(self):
        if self._handle is not None:
            return
        earlier, whole = self._read()
        self._next = 1 + max((entry["n"] for entry in earlier if "n" in entry), default=-1)
        try:
            atomic_file.make_folders(self.folder, PRIVATE)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._handle, whole)
            atomic_file.sync_folder(self.folder)
        except OSError as error:
            raise StopError(f"nothing is changed: {self.path} cannot be written: {why(error)}") from None
        if not earlier:
            head = {"run": self.run, "since": time.time(), "machine": machine_id(), "boot": boot_id()}
            self._append(head, safe=True)

    def _pending(self):
        try:
            with open(os.path.join(self.home, PENDING), "rb") as opened:
                return json.loads(opened.read().decode("utf-8"))
        except (OSError, ValueError):
            return {}

    def _save_pending(self, pending):
        path = os.path.join(self.home, PENDING)
        try:
            atomic_file.replace(path, json.dumps(pending, sort_keys=True).encode("ascii"), 0o600)
        except OSError as error:
            raise StopError(f"nothing more is changed: {path} cannot be written: {why(error)}") from None


def _parsed(line):
    try:
        entry = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def runs(home=""):
    """Return [(journal, its entries), …] of this host, oldest first. Ignore foreign folders."""
    found = []
    try:
        names = os.listdir(os.path.join(home or HOME, "runs"))
    except OSError:
        return []
    for name in filter(RUN_NAME.match, names):
        journal = Journal(name, home)
        try:
            entries = journal.entries()
        except StopError:
            continue
        if entries and "since" in entries[0]:
            found.append((entries[0]["since"], journal, entries))
    return [(journal, entries) for _, journal, entries in sorted(found, key=lambda one: one[0])]


def never_ended(entries):
    return bool(entries) and "ended" not in entries[-1]


def changes(entries):
    """Return the entries of changes, each with what was read back after it (`done`) if that is known."""
    found = {}
    for entry in entries:
        if "change" in entry:
            found[entry["n"]] = dict(entry)
        elif entry.get("n") in found:
            made = found[entry["n"]]
            made["done"] = made["after"] if "ok" in entry else entry["done"]
    return [found[number] for number in sorted(found)]


def handlers_of(group, entries):
    """Return the handlers of a group, each once, in the order in which they were due."""
    found = [entry["hook"] for entry in entries if "hook" in entry and entry["group"] == group]
    return list({handler["run"]: handler for handler in found}.values())


def handlers_not_run(entries):
    """Return the names of the handlers that a run did not reach."""
    due = [entry["hook"]["run"] for entry in entries if "hook" in entry]
    done = [entry["hook_done"] for entry in entries if "hook_done" in entry]
    return [name for name in dict.fromkeys(due) if name not in done]


def machine_id():
    return _line_of("/etc/machine-id")


def boot_id():
    return _line_of("/proc/sys/kernel/random/boot_id")


def _line_of(path):
    try:
        with open(path) as opened:
            return opened.read(100).strip()
    except OSError:
        return ""
