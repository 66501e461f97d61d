"""How long a process works on one thing by its own time: a wall clock also counts while others have its CPU."""

import os
import time

LOOK_SECONDS = 0.1
LONGEST_GAP = 0.5
"""More between two looks means that nobody let us look: what happened meanwhile is not known."""
OUTSIDE = "-1"
"""What the kernel names in the place of a system call while a page comes from a disk."""


class Effort:
    """The seconds that a process (its first thread) was seen on a CPU, or waiting in one and the same system call.

    What it waits for a CPU, is stopped or waits for a page does not count, and nothing of what nobody saw.
    """

    def __init__(self, pid, clock=time.monotonic, look=None):
        self.seconds = self.still = 0.0
        self._pid, self._clock, self._look = pid, clock, look or state
        self._at, self._last = clock(), None

    def look(self):
        """Look at the process, and count. `still`: for how long it has only waited. Raise OSError: it has ended."""
        now, seen = self._clock(), self._look(self._pid)
        gap, last = min(now - self._at, LONGEST_GAP), self._last
        self._at, self._last = now, seen
        if seen.waits and (last is None or seen == last):
            self.seconds += gap
            self.still += gap
        else:
            self.still = 0.0
            self.seconds += seen.cpu - last.cpu if last else 0.0


class State:
    """What a process does: whether it waits in a system call, its CPU seconds, and how often it was on a CPU."""

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
    """Return whether it is in a system call; where we may not see that, it may be."""
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
