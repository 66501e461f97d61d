"""The remains of programs and kernels that ended: `leftovers.*`."""

import os
import re
import stat
import time

from . import processes, read

SHM = "/dev/shm"
CRASHES = ("/sys/fs/pstore", "/var/lib/systemd/pstore")
"""Where the firmware keeps the last messages of a kernel, and where systemd-pstore moves them to."""
MAX_LEVELS = 4
PANIC = re.compile(r"Kernel panic - not syncing: (.{1,160})")
ON_PURPOSE = "sysrq triggered crash"


def collect(names, step):
    step("processes")
    owners = read.tried(_processes)
    yield "zombies", read.value(owners["zombies"]) if "zombies" in owners else owners
    if "shm" in names:
        step(SHM)
        yield "shm", read.tried(_shm, owners["users"]) if "users" in owners else owners
    if "panics" in names:
        step(CRASHES[0])
        yield "panics", read.tried(_panics)


def _processes():
    """Return {"users": who has processes, "zombies": number of those that ended and were not collected}."""
    try:
        read.text("/proc/1/comm")
    except FileNotFoundError:
        return read.unread(read.lacks("/proc hides other users' processes"))
    users, zombies = set(), 0
    for entry in read.names_in("/proc"):
        if entry.isdigit():
            status = read.text_or("/proc/{}/status".format(entry))
            users.update(int(each) for each in re.findall(r"^Uid:\s+(\d+)\s+(\d+)", status, re.M) for each in each)
            zombies += bool(re.search(r"^State:\s+Z", status, re.M))
    return {"users": users, "zombies": zombies}


def _shm(users):
    """Return {user: {"files", "bytes"}} of files of people who have no process any more. Files of root and of services do not count."""
    found = {}
    for _, status in _files(SHM):
        if status.st_uid >= processes.FIRST_USER and status.st_uid not in users:
            sums = found.setdefault(str(status.st_uid), {"files": 0, "bytes": 0})
            sums["files"] += 1
            sums["bytes"] += status.st_blocks * 512
    return read.value(found)


def _panics():
    """Return the recorded panics, newest last: {"file", "age_s", "text"}, without those that a user asked for."""
    now, found = time.time(), []
    for path, status in [each for folder in CRASHES for each in _files(folder)]:
        panic = PANIC.search(read.text_or(path)) if os.path.basename(path).startswith("dmesg") else None
        if panic and ON_PURPOSE not in panic.group(1):
            found.append({"file": path, "age_s": max(0, int(now - status.st_mtime)), "text": panic.group(1).strip()})
    return read.value(sorted(found, key=lambda each: -each["age_s"]))


def _files(top):
    """Yield (path, status) of the regular files below a folder. Raise OSError if one of its folders cannot be listed."""
    folders = [top]
    while folders:
        folder = folders.pop()
        for path in [folder + "/" + name for name in read.names_in(folder)]:
            try:
                status = os.lstat(read.ROOT + path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status
            elif stat.S_ISDIR(status.st_mode) and path.count("/") - top.count("/") < MAX_LEVELS:
                folders.append(path)
