"""Small files that a file system creates, finds, reads and removes in a second, as for data sets of many files.

What, thousands a second, one process, files of 4 KiB in a folder of their own: `create` (make, write, close),
`create_fsync` (and fsync: the journal, the server's disk), `stat`, `open` (open, read, close) and `unlink`.
How: only in a given folder (option `dir`), on any file system. On NFS and Lustre each is at least one request
to the server unless the client may answer from its cache: mount options (sync, noac, actimeo) decide, also here,
because nothing is dropped from a cache. Each part ends after SECONDS_A_PART, so that a slow server costs no minutes.
What is left: nothing; if the process is killed, a folder `.nodetune-files-HOST-PID`, which the next measurement of the
same folder by the same host removes.
Statistic: the median of the repeats.
Manually: mdtest -n 2000 -w 4096 -e 4096 -d DIR -i 3
"""

import os
import random
import re
import socket
import time

from nodetune.measurements.host import report as reporting
from . import disk, disk_buffered

SECONDS = 150.0
SCOPE = "host"
ORDER = 114
SUITES = {}
TAKES_FOLDER = True
TOLERANCE = {"": {"peers": 30, "baseline": 30, "drift": 10}}
SUSPECT = "mount options of {subject}, its server or its journal"
SECONDS_A_PART = 4.0
COUNT = 2000
FSYNCED = 5
"""A fifth of the files is made with fsync."""
SIZE = 4096
NAME = ".nodetune-files-{}-{}"
OURS = r"s?\d+$"


def measure(options, report):
    """Measure. Options: dir (required), count (files), repeats, seconds (a part)."""
    folder = disk.folder_of(options)
    try:
        with Place.made(folder, NAME, OURS) as place:
            runs = disk_buffered.repeated(report, int(options.get("repeats", 3)), lambda: _run(report, place, options))
    except OSError as problem:
        raise reporting.MeasurementError("{}: {}".format(folder, (problem.strerror or str(problem)).lower()))
    about = dict(disk.mount_of(folder), block=SIZE, files=min(each["create"][0] for each in runs))
    for metric in ("create", "create_fsync", "stat", "open", "unlink"):
        rates = [count / seconds / 1e3 for count, seconds in (each[metric] for each in runs)]
        report.result(folder, rates, "k/s", metric=metric, **about)


def _run(report, place, options):
    """Return {metric: (how many, seconds)} of one repeat, which leaves the folder empty."""
    count, most = int(options.get("count", COUNT)), float(options.get("seconds", SECONDS_A_PART))
    report.step("{} small files in {}".format(count, place.folder))
    names = [str(number) for number in range(count)]
    found = {"create": timed(place.create, names, most)}
    names = names[: found["create"][0]]
    random.Random(1).shuffle(names)
    for metric, act in (("stat", place.stat), ("open", place.read), ("unlink", place.unlink)):
        found[metric] = timed(act, names, most)
    for name in names[found["unlink"][0] :]:
        place.unlink(name)
    synced = ["s" + name for name in names[: max(1, count // FSYNCED)]]
    found["create_fsync"] = timed(place.create_fsync, synced, most)
    for name in synced[: found["create_fsync"][0]]:
        place.unlink(name)
    return found


def timed(act, names, most):
    """Do something with each name in turn until the time is over. Return (count, seconds)."""
    clock, count = time.perf_counter, 0
    start = clock()
    for name in names:
        act(name)
        count += 1
        if clock() - start > most:
            break
    return count, clock() - start


class Place:
    """Our own folder, used by a handle: a link that replaces its name is not followed. Removed at the end."""

    @classmethod
    def made(cls, folder, pattern, ours):
        """Make such a folder with a name from a pattern with host and process; `ours`: pattern of its file names.

        Folders of killed measurements with the same pattern are removed first.
        """
        host = re.sub(r"[^A-Za-z0-9.-]", "", socket.gethostname())
        sweep(folder, pattern.format(host, ""), ours)
        name = pattern.format(host, os.getpid())
        os.mkdir(os.path.join(folder, name), 0o700)
        return cls(folder, name, ours)

    def __init__(self, folder, name, ours):
        self.folder = folder
        self.path = os.path.join(folder, name)
        self._ours = ours
        self._name = name
        self._above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._above)
        self._block = os.urandom(SIZE)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        try:
            self.empty()
        finally:
            os.close(self._inside)
            os.close(self._above)

    def empty(self):
        """Remove the files that are ours, and the folder."""
        for name in os.listdir(self._inside):
            if re.match(self._ours, name):
                self.unlink(name)
        os.rmdir(self._name, dir_fd=self._above)

    def is_ours(self):
        return os.fstat(self._inside).st_uid == os.geteuid()

    def create(self, name, sync=False):
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._inside)
        try:
            os.write(handle, self._block)
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)

    def create_fsync(self, name):
        self.create(name, sync=True)

    def stat(self, name):
        os.stat(name, dir_fd=self._inside)

    def read(self, name):
        handle = os.open(name, os.O_RDONLY, dir_fd=self._inside)
        try:
            os.read(handle, SIZE)
        finally:
            os.close(handle)

    def unlink(self, name):
        os.unlink(name, dir_fd=self._inside)


def sweep(folder, start, ours):
    """Remove the folders of killed measurements of this host: their processes are gone, their files are ours."""
    for name in os.listdir(folder):
        found = re.match(re.escape(start) + r"(\d+)$", name)
        if found and not os.path.exists("/proc/" + found.group(1)):
            try:
                with Left(folder, name, ours):
                    pass
            except OSError:
                continue  # somebody else's, or being removed: the new folder has a name of its own


class Left(Place):
    """Such a folder of a process that is gone."""

    def empty(self):
        if self.is_ours():
            Place.empty(self)
