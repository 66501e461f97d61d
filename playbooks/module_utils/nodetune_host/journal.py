"""What a run does to this host, written down before it is done: one JSON line each, never rewritten.

{"run", "since", "machine", "boot"}                       head, when the run changes its first thing
{"n", "group", "change", "checks", "before", "after"}     about to bring the thing from `before` to `after`
{"n", "ok": true} or {"n", "done": state, "problem"}      what was read back: `after`, or something else
{"group", "hook"}                                         will be run when the group's changes are made
{"hook_done", "problem"}
{"ended": seconds}
"""

import json
import os
import re
import time

from . import file
from .problem import StopError, why

HOME = "/var/lib/nodetune"
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
LASTING = ("update-grub", "initramfs")
"""Hooks that a reboot does not make superfluous."""


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

    def owe(self, group, hooks):
        """Write down the hooks that are due once the group's changes are made. A later run makes up for lost ones."""
        self._open()
        for hook in hooks:
            self._append({"group": group, "hook": hook})
        debts = self._debts()
        debts.update({hook["run"]: boot_id() for hook in hooks})
        self._save_debts(debts)

    def owed(self, hook):
        """Return whether an earlier run ended between a change and this hook."""
        boot = self._debts().get(hook["run"])
        return boot is not None and (hook["run"] in LASTING or boot == boot_id())

    def end_hook(self, hook, problem=""):
        self._open()
        self._append({"hook_done": hook["run"], "problem": problem} if problem else {"hook_done": hook["run"]})
        if not problem:
            self.forgive(hook)

    def forgive(self, hook):
        """Remove a pending handler: it was run, or nothing changed."""
        debts = self._debts()
        if debts.pop(hook["run"], None) is not None:
            self._save_debts(debts)

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
            _private_folders(self.folder)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._handle, whole)
            file.sync_folder(self.folder)
        except OSError as error:
            raise StopError(f"nothing is changed: {self.path} cannot be written: {why(error)}") from None
        if not earlier:
            head = {"run": self.run, "since": time.time(), "machine": machine_id(), "boot": boot_id()}
            self._append(head, safe=True)

    def _debts(self):
        try:
            with open(os.path.join(self.home, "owed.json"), "rb") as opened:
                return json.loads(opened.read().decode("utf-8"))
        except (OSError, ValueError):
            return {}

    def _save_debts(self, debts):
        path = os.path.join(self.home, "owed.json")
        try:
            file.replace(path, json.dumps(debts, sort_keys=True).encode("ascii"), 0o600)
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


def _private_folders(folder):
    """Make folders for root only: journals have the content of configuration files.

    Each new folder is durable over a power cut.
    """
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    if not os.path.isdir(above):
        _private_folders(above)
    os.mkdir(folder, 0o700)
    file.sync_folder(above)
