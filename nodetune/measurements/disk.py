"""File system performance: sequential writes and reads, and small random reads, by fio.

What: metrics `write` and `read` (GB/s, blocks of 1 MiB), `random_read` (thousand operations a second, blocks of 4 KiB) and
`random_read_p99` (µs, the latency that one read of a hundred exceeds), direct I/O, past the page cache.
How: only in a given folder (option `dir`), in a file that never has a name, so that
nothing is left however this ends. At most a tenth of the free space is used; the file is written in full before anything
is read. Raw devices are never touched.
On a single NVMe drive, about has its model and its PCIe link: what reads and writes are a share of.
Statistic: the median of the repeats, each of SECONDS_A_RUN. about["others_io"]: the share of what the device moved
meanwhile that was not for this measurement.
Manually: fio --name=x --directory=DIR --size=4G --direct=1 --rw=read --bs=1M --iodepth=16 --ioengine=libaio --runtime=5
--time_based --numjobs=4 --group_reporting
"""

import errno
import json
import os
import re
import resource

from nodetune.onhost import files
from nodetune.measurements.host import external_tool, pcie
from nodetune.measurements.host import report as reporting

SECONDS = 180.0
SCOPE = "host"
ORDER = 110
SUITES = {}
TAKES_FOLDER = True
TOLERANCE = {"": {"peers": 25, "baseline": 25, "drift": 5}}
SUSPECT = "the disk or file system under {subject}"
SIZE_MATTERS = True
SECONDS_A_RUN = 4
PACKAGE = "fio"
WANTED = 4 << 30
MIN_BYTES = 64 << 20
BLOCK = 1 << 20
"""GT/s of a PCIe link, as the kernel writes them, to its generation."""

JOBS = {
    "write": ["--rw=write", "--bs=1m"],
    "read": ["--rw=read", "--bs=1m"],
    "random_read": ["--rw=randread", "--bs=4k", "--norandommap=1"],
}


def measure(options, report):
    """Measure. Options: dir (required), size (bytes, at most), seconds (a run), repeats, jobs, depth, metrics (all of JOBS)."""
    folder = folder_of(options)
    program = external_tool.need("fio", PACKAGE)
    size = size_for(folder, int(options.get("size", WANTED)))
    report.step("writing {} MiB in {}".format(size >> 20, folder))
    handle = nameless(folder)
    try:
        fill(handle, size)
        run = Fio(program, handle, size, options)
        about = {"size": size, "engine": run.engine, "jobs": run.jobs, "depth": run.depth, "direct": True}
        about.update(mount_of(folder), **drive_of(os.stat(folder).st_dev))
        for metric in options.get("metrics") or JOBS:
            report.step("{} in {}".format(metric, folder))
            before = blocks(folder)
            samples = [run.sample(metric) for _ in range(int(options.get("repeats", 3)))]
            _tell(report, folder, metric, samples, dict(about, **share_of_others(before, blocks(folder))))
    finally:
        os.close(handle)


def folder_of(options):
    """Return the given folder. Raise SkipError if none was given, MeasurementError if it is not a folder."""
    folder = options.get("dir")
    if not folder:
        raise reporting.SkipError("no folder to measure in: give --disk DIR")
    if not os.path.isdir(folder):
        raise reporting.MeasurementError("{} is not a folder: give one on the file system to measure".format(folder))
    return folder


def _tell(report, folder, metric, samples, about):
    if metric != "random_read":
        report.result(folder, [each["bytes"] / 1e9 for each in samples], "GB/s", metric=metric, block=BLOCK, **about)
        return
    report.result(folder, [each["iops"] / 1e3 for each in samples], "k/s", metric=metric, block=4096, **about)
    p99 = [each["p99"] / 1e3 for each in samples]
    report.result(folder, p99, "µs", "lower", metric="random_read_p99", block=4096, **about)


def size_for(folder, wanted):
    """Return the bytes to use: at most a tenth of the free space. Raise SkipError if that is too little."""
    try:
        there = os.statvfs(folder)
    except OSError as problem:
        raise reporting.MeasurementError("{}: {}".format(folder, problem.strerror.lower()))
    free = there.f_bavail * there.f_frsize
    size = min(wanted, free // 10) // BLOCK * BLOCK
    if size < MIN_BYTES:
        raise reporting.SkipError(
            "{} has {} MiB free, of which at most a tenth is used: too little".format(folder, free >> 20)
        )
    return size


def nameless(folder):
    """Open a file without a name in the folder. Raise MeasurementError."""
    path = os.path.join(folder, ".nodetune-disk-{}".format(os.getpid()))
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        raise reporting.MeasurementError("cannot create a file in {}: {}".format(folder, problem.strerror.lower()))
    os.unlink(path)
    return handle


def fill(handle, size):
    """Write the whole file: unwritten parts would be read without the disk."""
    block = os.urandom(BLOCK)
    try:
        for offset in range(0, size, BLOCK):
            os.pwrite(handle, block, offset)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError as problem:
        raise reporting.MeasurementError("writing the file: {}".format(problem.strerror.lower()))


def mount_of(folder):
    """Return {"device", "file_system"} of the mount that a folder is on."""
    real, best = os.path.realpath(folder), ("", {})
    with open("/proc/self/mounts", errors="replace") as file:
        for line in file:
            device, place, kind = line.split()[:3]
            place = re.sub(r"\\(\d{3})", lambda found: chr(int(found.group(1), 8)), place)
            inside = real == place or real.startswith(place.rstrip("/") + "/")
            if inside and len(place) >= len(best[0]):
                best = place, {"device": device, "file_system": kind}
    return best[1]


def drive_of(number, system="/sys"):
    """Return {"drive": model, "drive_link": its PCIe link} of the NVMe drive behind a device.

    Empty for another kind, for several, and for an encrypted one, whose rate is that of the CPUs.

    The link is the best that the drive and its slot support: a worse one shows as a lower share of it.
    """
    path = os.path.realpath("{}/dev/block/{}:{}".format(system, os.major(number), os.minor(number)))
    behind = files.names(path + "/slaves")  # what a logical volume, an encrypted one or an array is made of
    while len(behind) == 1:
        if files.text(path + "/dm/uuid").startswith("CRYPT"):
            return {}
        path = os.path.realpath("{}/class/block/{}".format(system, behind[0]))
        behind = files.names(path + "/slaves")
    if os.path.exists(path + "/partition"):
        path = os.path.dirname(path)
    device = os.path.realpath(path + "/device/device")
    if behind or not os.path.basename(path).startswith("nvme") or not os.path.exists(device + "/max_link_speed"):
        return {}
    link = pcie.link(device)
    return dict({"drive": files.text(path + "/device/model").strip()}, **({"drive_link": link} if link else {}))


def blocks(folder):
    """Return (blocks of 512 bytes that the folder's device has transferred, those of our programs), or None.

    Unknown if the file system is on several devices or on none of this host.
    """
    number = os.stat(folder).st_dev
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    for line in files.text("/proc/diskstats").splitlines():
        fields = line.split()
        if fields[:2] == [str(os.major(number)), str(os.minor(number))]:
            return int(fields[5]) + int(fields[9]), sum(each.ru_inblock + each.ru_oublock for each in ours)
    return None


def share_of_others(before, after):
    """Return {"others_io": the share of the device's transfers that was not ours}; empty if unknown."""
    if before is None or after is None or after[0] <= before[0]:
        return {}
    moved, ours = after[0] - before[0], after[1] - before[1]
    return {"others_io": round(max(0.0, 1.0 - ours / moved), 3)}


class Fio:
    """Runs of fio over one open file."""

    def __init__(self, program, handle, size, options):
        self.program = program
        self.handle = handle
        self.size = size
        self.seconds = int(options.get("seconds", SECONDS_A_RUN))
        self.jobs = int(options.get("jobs", 4))
        self.depth = int(options.get("depth", 16))
        self.engine = "libaio" if "libaio" in external_tool.run([program, "--enghelp"], 10) else "psync"

    def sample(self, metric):
        """Return {"bytes" per second, "iops", "p99" (ns)}. Raise MeasurementError."""
        share = self.size // self.jobs // BLOCK * BLOCK  # each job has a part of its own
        given = ["--name=" + metric, "--filename=/proc/self/fd/{}".format(self.handle), "--size={}".format(share)]
        given += ["--direct=1", "--ioengine=" + self.engine, "--iodepth={}".format(self.depth)]
        given += ["--time_based", "--runtime={}".format(self.seconds), "--ramp_time=1"]
        given += ["--numjobs={}".format(self.jobs), "--group_reporting", "--output-format=json", "--thread"]
        given += ["--allow_file_create=0", "--randrepeat=0", "--offset_increment={}".format(share)]
        text = external_tool.run(
            [self.program, *given, *JOBS[metric]], self.seconds + 30, ok=(0, 1), pass_fds=(self.handle,)
        )
        return read(text, "write" if metric == "write" else "read")


def read(text, direction):
    """Read the figures of one direction from fio's JSON. Raise MeasurementError with fio's message."""
    try:
        job = json.loads(text[text.index("{") :])["jobs"][0]
        if job.get("error"):
            raise reporting.MeasurementError(_complaint(job["error"]))
        found = job[direction]
        p99 = found.get("clat_ns", {}).get("percentile", {}).get("99.000000", 0)
        return {"bytes": found["bw_bytes"], "iops": found["iops"], "p99": p99}
    except (ValueError, KeyError, IndexError, TypeError):
        raise reporting.MeasurementError("fio printed no figures: " + external_tool.last_line(text.encode("utf-8")))


def _complaint(number):
    if number == errno.EINVAL:
        return "fio: this file system does not support direct I/O"
    return "fio: " + os.strerror(number).lower()
