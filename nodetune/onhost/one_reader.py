"""One at a time on a host: a process takes its turn by its name (comm), which no dead process keeps."""

import collections
import os
import time

from . import effort

POLL_SECONDS = 0.01
LONGEST_NAME = 15
"""Characters of a name that the kernel keeps."""
STUCK = "D"
STILL_SECONDS = 0.5
"""For how long it must be seen to do nothing: one that waits for a disk or a CPU moves on."""

Rival = collections.namedtuple("Rival", "pid age state still")  # noqa: PYI024  (typing takes too long to import)
"""Another process that carries the name. `still`: the seconds that it was seen to only wait in one system call."""


def take_turn(name, seconds, stuck=float("inf"), is_rival=None):
    """Wait until no other process carries the name, then carry it. Return None, or the Rival that stays.

    A rival is a process of root's or our own with the same name, or one whose name `is_rival`. One that sits in the
    kernel, does not move and is `stuck` seconds old is not waited for. Each takes the name and then looks: of two that do so
    together at least one sees the other, gives the name back and waits a random moment, so that never two go on.
    """
    name, own = name[:LONGEST_NAME], own_name()
    is_rival = is_rival or name.__eq__
    end, watched = time.monotonic() + seconds, {}
    while True:
        found = rivals(is_rival)
        if not found:
            call_ourselves(name)
            found = rivals(is_rival)
            if not found:
                return None
            call_ourselves(own)
        found = [each._replace(still=_still(each.pid, watched)) for each in found]
        sitting = [each for each in found if is_stuck(each, stuck)]
        if sitting or time.monotonic() > end:
            return (sitting or found)[0]
        time.sleep(POLL_SECONDS + ord(os.urandom(1)) / 5000.0)


def is_stuck(rival, seconds):
    """Return whether one that `take_turn` returned sits in the kernel, does not move and is at least so old."""
    return rival.state in STUCK and rival.age >= seconds and rival.still >= STILL_SECONDS


def in_words(rival):
    return "an earlier reader (process {}, {:.0f} s old) has not come back".format(rival.pid, rival.age)


def _still(pid, watched):
    """Look once more at a process. Return for how many seconds it has done nothing."""
    try:
        watched.setdefault(pid, effort.Effort(pid)).look()
    except (OSError, IndexError):
        return 0.0  # it has ended meanwhile
    return watched[pid].still


def own_name():
    return _text("/proc/self/comm").rstrip("\n")


def call_ourselves(name):
    handle = os.open("/proc/self/comm", os.O_WRONLY)
    try:
        os.write(handle, name.encode("utf-8", "replace")[:LONGEST_NAME])
    finally:
        os.close(handle)


def rivals(is_rival):
    """Return the others that are alive as Rival, oldest first."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if is_rival(_text("/proc/" + entry + "/comm").rstrip("\n")) and _is_ours(entry):
                found.append(Rival(int(entry), *_age_and_state(entry), still=0.0))
        except OSError:
            continue  # it has ended meanwhile
    return sorted((each for each in found if each.state not in "ZX"), key=lambda each: -each.age)


def _is_ours(entry):
    """Return whether root or we ourselves started it: nobody else, by a name, can keep us from our work.

    By the real user: a program that runs as root for whoever starts it (passwd) can be called anything.
    """
    rows = [line.split() for line in _text("/proc/" + entry + "/status").splitlines()]
    return any(row[0] == "Uid:" and int(row[1]) in (0, os.getuid()) for row in rows if row)


def _age_and_state(entry):
    fields = _text("/proc/" + entry + "/stat").rpartition(")")[2].split()
    uptime = float(_text("/proc/uptime").split()[0])
    return uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK"), fields[0]


def _text(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, 4096).decode("utf-8", "replace")
    finally:
        os.close(handle)
