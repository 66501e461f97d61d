"""One at a time on a host: a process takes its turn by its name (comm), which no dead process keeps."""

import os
import time

POLL_SECONDS = 0.01
LONGEST_NAME = 15
"""Characters of a name that the kernel keeps."""
STUCK = "D"


def take_turn(name, seconds, stuck=float("inf"), is_rival=None, anyone=False):
    """Wait until no other process carries the name, then carry it. Return None, or the one that stays: (pid, age, state).

    A rival is a process of root's or our own (of `anyone`) with the same name, or one whose name `is_rival`. One that
    sits in the kernel and is `stuck` seconds old is not waited for. Each takes the name and then looks: of two that do so
    together at least one sees the other, gives the name back and waits a random moment, so that never two go on.
    """
    name, own = name[:LONGEST_NAME], own_name()
    is_rival = is_rival or name.__eq__
    end = time.monotonic() + seconds
    while True:
        found = rivals(is_rival, anyone)
        if not found:
            call_ourselves(name)
            found = rivals(is_rival, anyone)
            if not found:
                return None
            call_ourselves(own)
        sitting = [each for each in found if is_stuck(each, stuck)]
        if sitting or time.monotonic() > end:
            return (sitting or found)[0]
        time.sleep(POLL_SECONDS + ord(os.urandom(1)) / 5000.0)


def is_stuck(rival, seconds):
    """Return whether one that `take_turn` returned sits in the kernel and is at least so old."""
    return rival[2] in STUCK and rival[1] >= seconds


def in_words(rival):
    return "an earlier reader (process {}, {:.0f} s old) has not come back".format(rival[0], rival[1])


def own_name():
    return _text("/proc/self/comm").rstrip("\n")


def call_ourselves(name):
    handle = os.open("/proc/self/comm", os.O_WRONLY)
    try:
        os.write(handle, name.encode("utf-8", "replace")[:LONGEST_NAME])
    finally:
        os.close(handle)


def rivals(is_rival, anyone=False):
    """Return (process, age in seconds, state) of the others that are alive, oldest first."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if is_rival(_text("/proc/" + entry + "/comm").rstrip("\n")) and (anyone or _is_ours(entry)):
                found.append((int(entry),) + _age_and_state(entry))
        except OSError:
            continue  # it has ended meanwhile
    return sorted((each for each in found if each[2] not in "ZX"), key=lambda each: -each[1])


def _is_ours(entry):
    """Return whether a process is root's or our own: nobody else can keep us from our work."""
    return os.stat("/proc/" + entry).st_uid in (0, os.getuid())


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
