"""One reader at a time on a host: a process takes its turn by its name (comm), which disappears with the process.

A container's root can give its processes any name. So a reader counts only in our PID namespace, and where the guard is
installed only if it locks the byte of its own number in the guard's lock file, which only root of the host can open.
"""

import collections
import fcntl
import os
import struct
import time

from . import process_time
from .worker import prctl

POLL_SECONDS = 0.01
PR_SET_NAME = 15
MAX_NAME_LENGTH = 15
"""Characters of a process name that the kernel keeps."""
STUCK = "D"
LOCK = "hhqqi0q"
"""struct flock: kind, whence, start, length, process."""
STILL_SECONDS = 0.5
"""Seconds for which it must be seen to do nothing: a process that waits for a disk or a CPU progresses."""

Rival = collections.namedtuple("Rival", "pid age state still")  # noqa: PYI024  (typing takes too long to import)
"""Another process with the name. `still`: the seconds that it was seen waiting in one system call."""


def take_turn(name, seconds, stuck=float("inf"), is_rival=None, lock=None):
    """Wait until no other process has the name, then take it. Return None, or the Rival that remains.

    A rival is a process of root or our user with the same name, or one whose name `is_rival`, and which holds the file
    `lock` if one is given: then we do too, until this process ends. A rival that is in the kernel, makes no progress and is `stuck` seconds old is not waited for. Each takes the name and then looks: of two
    that do so together, at least one sees the other, releases the name and waits a random time.
    """
    name, own = name[:MAX_NAME_LENGTH], own_name()
    is_rival = is_rival or name.__eq__
    end, watched = time.monotonic() + seconds, {}
    held = None if lock is None else hold(lock)
    while True:
        found = rivals(is_rival, held)
        if not found:
            call_ourselves(name)
            found = rivals(is_rival, held)
            if not found:
                return None
            call_ourselves(own)
        found = [each._replace(still=_still(each.pid, watched)) for each in found]
        sitting = [each for each in found if is_stuck(each, stuck)]
        if sitting or time.monotonic() > end:
            return (sitting or found)[0]
        time.sleep(POLL_SECONDS + ord(os.urandom(1)) / 5000.0)


def is_stuck(rival, seconds):
    """Return whether the rival from `take_turn` is in the kernel, makes no progress and is at least this old."""
    return rival.state in STUCK and rival.age >= seconds and rival.still >= STILL_SECONDS


def in_words(rival):
    return "an earlier reader (process {}, {:.0f} s old) is still running".format(rival.pid, rival.age)


def _still(pid, watched):
    """Look at a process again. Return the seconds for which it has done nothing."""
    try:
        watched.setdefault(pid, process_time.ProcessTime(pid)).look()
    except (OSError, IndexError):
        return 0.0  # it has ended meanwhile
    return watched[pid].still


def own_name():
    return _text("/proc/self/comm").rstrip("\n")


def call_ourselves(name):
    """Set the name of this process, also where /proc is read-only."""
    import ctypes  # here: see worker.prctl

    text = ctypes.create_string_buffer(name.encode("utf-8", "replace")[:MAX_NAME_LENGTH])
    prctl(PR_SET_NAME, ctypes.addressof(text))


def hold(lock):
    """Lock the byte of our number in a file, until this process ends. Return the open file; -1 if that is impossible.

    Nobody's child has this lock. Whoever locks the file as a whole (flock) is not in its way.
    """
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, os.getpid())
    except OSError:
        return -1
    return handle


def rivals(is_rival, held=None):
    """Return the other live processes as Rival, oldest first; with a file from `hold`, only those that hold it too."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if is_rival(_text("/proc/" + entry + "/comm").rstrip("\n")) and _is_ours(entry) and _holds(entry, held):
                found.append(Rival(int(entry), *_age_and_state(entry), still=0.0))
        except OSError:
            continue  # it has ended meanwhile
    return sorted((each for each in found if each.state not in "ZX"), key=lambda each: -each.age)


def _is_ours(entry):
    """Return whether root or our user started it, in our PID namespace: others cannot block us by a process name.

    The real user counts: a setuid program (passwd) can be given any name by the user who starts it.
    """
    started_by = _status(entry, "Uid:")[:1]
    return started_by != [] and int(started_by[0]) in (0, os.getuid()) and _is_in_our_namespace(entry)


def _is_in_our_namespace(entry):
    try:
        return os.path.samefile("/proc/" + entry + "/ns/pid", "/proc/self/ns/pid")
    except PermissionError:  # root's, and we are not: it has a number for each namespace down to its own
        return len(_status(entry, "NSpid:")) == len(_status("self", "NSpid:"))


def _holds(entry, held):
    """Return whether a process holds the file, according to the kernel. The files that it has open are not touched."""
    if held is None:
        return True
    try:
        asked = struct.pack(LOCK, fcntl.F_WRLCK, os.SEEK_SET, int(entry), 1, 0)
        kind, _, _, _, pid = struct.unpack(LOCK, fcntl.fcntl(held, fcntl.F_GETLK, asked))
    except (OSError, ValueError):
        return False  # without the file, no reader differs from a process that only has the name
    return kind != fcntl.F_UNLCK and pid == int(entry)


def _status(entry, key):
    rows = [line.split() for line in _text("/proc/" + entry + "/status", 1 << 20).splitlines()]
    return next((row[1:] for row in rows if row and row[0] == key), [])


def _age_and_state(entry):
    fields = _text("/proc/" + entry + "/stat").rpartition(")")[2].split()
    uptime = float(_text("/proc/uptime").split()[0])
    return uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK"), fields[0]


def _text(path, longest=4096):
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, longest).decode("utf-8", "replace")
    finally:
        os.close(handle)
