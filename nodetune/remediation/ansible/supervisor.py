"""Runs a command and leaves nothing behind: when it ends, when it must stop, when nodetune itself is killed.

    python -I supervisor.py FOLDER PARENT COMMAND…

A script of its own, for the standard library only: it outlives the process that started it. Ansible's workers and its
SSH masters are sessions of their own, which no signal to a process group reaches; as their reaper this finds them all.
SIGTERM, SIGINT or SIGHUP, or the death of PARENT, stop the command; a second signal stops it at once. With PARENT gone,
FOLDER (which holds passwords) is removed as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 5.0
"""Seconds for the command to end after a request, and seconds for killing it."""

PERIOD_SECONDS = 0.05


class Supervisor:
    """One command, and all processes that come of it."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._signals = 0
        self._status: int | None = None
        self._pid = 0

    def run(self, command: list[str]) -> int:
        """Run `command` and return its exit status, or 130 when it was stopped."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heard)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._pid = subprocess.Popen(command).pid  # reaped by _reap, like all others
        while not (self._ended() or self._signals or self.orphaned):
            time.sleep(PERIOD_SECONDS)
        stopped = self._status is None
        if stopped:
            self._ask()
        self._kill()
        return 130 if stopped else self._status or 0

    @property
    def orphaned(self) -> bool:
        return os.getppid() != self._parent

    def _heard(self, _number: int, _frame: object) -> None:
        self._signals += 1

    def _ended(self) -> bool:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self._pid:
                    self._status = os.waitstatus_to_exitcode(status) % 256
        return self._status is not None

    def _ask(self) -> None:
        """Interrupt Ansible like Ctrl-C: it ends its workers and says so."""
        asked, end = self._signals, time.monotonic() + GRACE_SECONDS
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGINT)
        while not self._ended() and self._signals <= max(asked, 1) and time.monotonic() < end:
            time.sleep(PERIOD_SECONDS)

    def _kill(self) -> None:
        """End whatever is left. What belongs to another user (sudo on this host) cannot be, and ends with its task."""
        spared, end = set[int](), time.monotonic() + GRACE_SECONDS
        while time.monotonic() < end:
            self._ended()
            left = [pid for pid in descendants(os.getpid()) if pid not in spared]
            if not left:
                return
            for pid in left:
                spared |= _spared(pid)
            time.sleep(PERIOD_SECONDS / 5)


def _spared(pid: int) -> set[int]:
    """Kill a process; returned where that is not allowed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        return {pid}
    return set()


def descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of a process, in whatever session or group they are."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int(Path(entry.path, "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    waiting = list(children.get(pid, ()))
    while waiting:
        found = waiting.pop()
        yield found
        waiting += children.get(found, ())


def main(folder: str, parent: str, *command: str) -> int:
    supervisor = Supervisor(int(parent))
    partial = Path(folder, "supervisor.partial")
    partial.write_text(str(os.getpid()), "ascii")
    partial.replace(Path(folder, "supervisor"))
    status = supervisor.run(list(command))
    if supervisor.orphaned:
        shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
