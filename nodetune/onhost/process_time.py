"""Measure the time of a process on one task. Wall time would include time in which others have its CPU."""

import os
import time

LOOK_SECONDS = 0.1
MAX_GAP = 0.5
"""A longer gap between two looks means that we did not run: what happened meanwhile is unknown."""
OUTSIDE = "-1"
"""The kernel's text instead of a system call while a page is read from a disk."""


class ProcessTime:
    """The seconds that a process (its first thread) was seen on a CPU or waiting in one system call.

    Waiting for a CPU or a page, being stopped, and unobserved time do not count.
    """

    def __init__(self, pid, clock=time.monotonic, look=None):
        self.seconds = self.still = 0.0
        self._pid, self._clock, self._look = pid, clock, look or state
        self._at, self._last = clock(), None

    def look(self):
        """Look at the process and count. `still`: how long it has only waited. Raise OSError if it has ended."""
        now, seen = self._clock(), self._look(self._pid)
        gap, last = min(now - self._at, MAX_GAP), self._last
        self._at, self._last = now, seen
        if seen.waits and (last is None or seen == last):
            self.seconds += gap
            self.still += gap
        else:
            self.still = 0.0
            self.seconds += seen.cpu - last.cpu if last else 0.0


class State:
    """The state of a process: whether it waits in a system call, its CPU seconds, and how often it was on a CPU."""

    def __init__(self, waits, cpu, times):
        self.waits, self.cpu, self.times = waits, cpu, times

    def __eq__(self, other):
        return (self.waits, self.cpu, self.times) == (other.waits, other.cpu, other.times)

    __hash__ = None


def state(pid):
    """Return the State of the first thread of a process. Raise OSError."""
    folder = "/proc/{0}/task/{0}/".format(pid)
    fields = _text(folder + "stat").rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    times = [line for line in _text(folder + "status").splitlines() if "ctxt_switches" in line]
    return State(fields[0] in "SD" and _in_call(folder), cpu, times)


def _in_call(folder):
    """Return whether it is in a system call; if that is hidden, assume so."""
    try:
        return _text(folder + "syscall").split(None, 1)[0] != OUTSIDE
    except (OSError, IndexError):
        return True


def _text(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, 1 << 14).decode("utf-8", "replace")
    finally:
        os.close(handle)
