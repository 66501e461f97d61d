"""File performance through the page cache: writes, writes with fsync, and reads, like checkpoints and data sets.

What, in GB/s, one process: `write`, until the last write() returns (it waits once the dirty limits are reached);
`write_fsync`, until fsync returns too, which is when a checkpoint is safe; `read`, from first to last byte in blocks of
128 KiB, after the file has left the page cache, so that read-ahead decides. disk has the same with direct I/O.
How: only in a given folder (option `dir`), on any file system, also NFS and Lustre; in a file that never has a name,
of at most a tenth of the free space. It is written again for each repeat, like a checkpoint.
Only its own pages are dropped from the cache (posix_fadvise), and mincore shows whether they are gone.
Statistic: the median of the repeats, of which there are fewer where time runs out. about: the file system's type, its
read-ahead, the dirty limits, and fsync's seconds of each repeat: the time for which a checkpoint stalls its job.
Manually: fio --name=x --directory=DIR --size=1G --rw=write --bs=1M --end_fsync=1 and fio … --rw=read --bs=128k --invalidate=1
"""

import ctypes
import mmap
import os
import time

from nodetune.onhost import files
from nodetune.measurements.host import report as reporting
from . import disk

SECONDS = 240.0
SCOPE = "host"
ORDER = 112
SUITES = {}
TAKES_FOLDER = True
TOLERANCE = {"": {"peers": 25, "baseline": 25, "drift": 5}}
SUSPECT = "dirty limits, read-ahead or mount options of {subject}, or what is under it"
SIZE_MATTERS = True
WANTED = 1 << 30
READ_BLOCK = 128 << 10
MAX_CACHED = 0.05
DIRTY = ("dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio")


def measure(options, report):
    """Measure. Options: dir (required), size (bytes, at most), repeats."""
    folder = disk.folder_of(options)
    size = disk.size_for(folder, int(options.get("size", WANTED)))
    handle, before = disk.nameless(folder), disk.blocks(folder)
    about = dict(disk.mount_of(folder), size=size, direct=False, **settings(os.fstat(handle).st_dev))
    try:
        runs = repeated(report, int(options.get("repeats", 3)), lambda: _run(report, folder, handle, size))
    except OSError as problem:
        raise reporting.MeasurementError("{}: {}".format(folder, problem.strerror.lower()))
    finally:
        os.close(handle)
    about.update(disk.share_of_others(before, disk.blocks(folder)))
    about["fsync_seconds"] = [round(each["fsync"], 3) for each in runs]
    _tell(report, folder, size, runs, about)


def repeated(report, repeats, once):
    """Do something up to `times` times, at least once, but stop when the remaining time is too short for another."""
    found = []
    for _ in range(repeats):
        start = time.monotonic()
        found.append(once())
        if report.left() < 1.5 * (time.monotonic() - start):
            break
    return found


def _run(report, folder, handle, size):
    """Write and read the file once. Return the seconds of each part, and the share of it that stayed in the cache."""
    os.ftruncate(handle, 0)
    report.step("writing {} MiB in {}".format(size >> 20, folder))
    written, synced = write(handle, size)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    kept = cached(handle, size)
    report.step("reading {} MiB in {}".format(size >> 20, folder))
    return {"write": written, "fsync": synced, "cached": kept, "read": read(handle, size)}


def _tell(report, folder, size, runs, about):
    report.result(
        folder, [size / each["write"] / 1e9 for each in runs], "GB/s", metric="write", block=disk.BLOCK, **about
    )
    whole = [size / (each["write"] + each["fsync"]) / 1e9 for each in runs]
    report.result(folder, whole, "GB/s", metric="write_fsync", block=disk.BLOCK, **about)
    kept = max(each["cached"] or 0.0 for each in runs)
    if kept > MAX_CACHED:
        reason = "{} keeps {:.0%} of the file in memory in spite of drop requests: reads do not come from a disk"
        report.skip(reason.format(about.get("file_system", "this file system"), kept), folder, "read")
    else:
        about["cache_known"] = all(each["cached"] is not None for each in runs)
        report.result(
            folder, [size / each["read"] / 1e9 for each in runs], "GB/s", metric="read", block=READ_BLOCK, **about
        )


def write(handle, size):
    """Write the file from its start. Return the seconds of writing, and those of the fsync that follows."""
    block = os.urandom(disk.BLOCK)
    os.lseek(handle, 0, os.SEEK_SET)
    start = time.perf_counter()
    for _ in range(size // disk.BLOCK):
        if os.write(handle, block) != disk.BLOCK:
            raise reporting.MeasurementError("the file system accepted only part of a block: it is full")
    written = time.perf_counter()
    os.fsync(handle)
    return written - start, time.perf_counter() - written


def read(handle, size):
    """Read the file from its start in small blocks. Return the seconds."""
    buffer = bytearray(READ_BLOCK)
    os.lseek(handle, 0, os.SEEK_SET)
    start, left = time.perf_counter(), size
    while left > 0:
        count = os.readv(handle, [buffer])
        if count <= 0:
            raise reporting.MeasurementError("{} bytes of the file could not be read again".format(left))
        left -= count
    return time.perf_counter() - start


def cached(handle, size):
    """Return the share of our file's pages in the page cache, or None if the kernel does not report it."""
    libc, pages = ctypes.CDLL(None, use_errno=True), -(-size // mmap.PAGESIZE)
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    try:
        area = mmap.mmap(handle, size)
    except (OSError, ValueError):
        return None
    first, resident = ctypes.c_char.from_buffer(area), (ctypes.c_ubyte * pages)()
    problem = libc.mincore(ctypes.addressof(first), size, resident)
    del first
    area.close()
    return None if problem else sum(each & 1 for each in resident) / pages


def settings(device):
    """Return the kernel's settings: {"read_ahead_kb", and the dirty limits in force}."""
    ahead = files.number("/sys/class/bdi/{}:{}/read_ahead_kb".format(os.major(device), os.minor(device)))
    limits = {name: files.number("/proc/sys/vm/" + name) for name in DIRTY}
    found = {name: limit for name, limit in limits.items() if limit}
    return found if ahead is None else dict(found, read_ahead_kb=ahead)
