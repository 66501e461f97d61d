"""File system performance with GPU memory: GPUDirect Storage by NVIDIA's gdsio, and the path through the CPU.

What, in GB/s for each GPU: `read` and `write` through cuFile (-x 0), and `read_by_cpu`: the same read into host memory and
then copied to the GPU (-x 2), which is what a job has without it. Blocks of 1 MiB, direct I/O.
How: only in a given folder (option `dir`), in a new folder below it that is removed afterwards, with at most a
tenth of the free space (a killed measurement leaves it; the next one of this host removes it).
cuFile silently falls back to the CPU (compatibility mode) if the file system, the driver nvidia-fs or the PCIe
topology does not support it. So this is first forbidden (CUFILE_ALLOW_COMPAT_MODE=false). If it
then fails, it is allowed: a note gives the reason, and about["compatibility"] separates these figures.
Statistic: the median of the repeats.
Manually: CUFILE_ALLOW_COMPAT_MODE=false gdsio -D DIR -d 0 -w 8 -s 1G -i 1M -x 0 -I 1 (then -I 0; -x 2), and gdscheck -p
"""

import os
import re

from nodetune.onhost import files
from nodetune.measurements.host import external_tool
from nodetune.measurements.host import report as reporting
from . import disk, disk_files

SECONDS = 900.0  # eight GPUs, ten runs each of some seconds
SCOPE = "gpus"
ORDER = 116
SUITES = {}
TAKES_FOLDER = True
BY_NAME = True
TOLERANCE = {"": {"peers": 15, "baseline": 15, "drift": 5}}
SUSPECT = "the path between {gpu} and the storage: NUMA node and PCIe switch, nvidia-fs, ACS"
SIZE_MATTERS = True
PLACES = ("/usr/local/cuda/gds/tools/gdsio", "/usr/local/gds/tools/gdsio")
THREADS = 8
BLOCK = 1 << 20
WANTED = 4 << 30
RUN_SECONDS = 60
NAME = ".nodetune-gds-{}-{}"
OURS = r"gdsio\.\d+$|cufile\.log$"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
WRITE, READ = 1, 0
CUFILE, CPU = 0, 2
LINE = re.compile(r"IoType: (\w+) XferType: (\w+) .*?Throughput: ([\d.]+) ([KMGT]iB)/sec")
COMPLAINT = re.compile(r"error|fail|not supported|cannot|unable", re.I)


def measure(options, report):
    """Measure. Options: dir (required), gpus (numbers), size (bytes, at most), repeats."""
    folder = disk.folder_of(options)
    program = external_tool.find("gdsio") or next((path for path in PLACES if os.path.exists(path)), None)
    if program is None:
        raise reporting.SkipError("gdsio is not installed: install NVIDIA's package gds-tools")
    chosen = numbers(options)
    size = disk.size_for(folder, int(options.get("size", WANTED))) // THREADS // BLOCK * BLOCK
    with disk_files.Place.made(folder, NAME, OURS) as place:
        for gpu in chosen:
            report.step("GPUDirect Storage of GPU{} in {}".format(gpu, folder))
            try:
                _one(report, (program, place.path, size, int(options.get("repeats", 3))), gpu, disk.mount_of(folder))
            except reporting.MeasurementError as problem:
                report.failed(str(problem), "GPU{}".format(gpu))


def numbers(options):
    """Return the GPUs to measure: the given ones, or all that the driver has. Raise SkipError if there are none."""
    if options.get("gpus"):
        return [int(gpu) for gpu in options["gpus"]]
    found = [name for name in files.names("/proc/driver/nvidia/gpus") if ":" in name]
    if not found:
        raise reporting.SkipError("no NVIDIA GPU or no driver on this host")
    return list(range(len(found)))


def _one(report, how, gpu, about):
    program, place, size, repeats = how
    about = dict(about, size=size * THREADS, block=BLOCK, threads=THREADS, compatibility=False)
    try:
        run(program, command(place, gpu, size, (WRITE, CUFILE)), direct=True)
    except reporting.MeasurementError as problem:
        about["compatibility"] = True
        note = "GPU{}: cuFile works in compatibility mode, through the CPU: {}"
        report.note(note.format(gpu, problem))
    for metric, way in (("write", (WRITE, CUFILE)), ("read", (READ, CUFILE)), ("read_by_cpu", (READ, CPU))):
        given = command(place, gpu, size, way)
        samples = [run(program, given, direct=not about["compatibility"]) for _ in range(repeats)]
        more = dict(about, compatibility=None) if way[1] == CPU else about
        report.result("GPU{}".format(gpu), samples, "GB/s", metric=metric, **more)


def command(place, gpu, size, way):
    """Return gdsio's options for one run: a file for each thread in our folder."""
    kind, transfer = way
    words = {"-D": place, "-d": gpu, "-w": THREADS, "-s": size, "-i": BLOCK, "-x": transfer, "-I": kind}
    return [str(word) for pair in words.items() for word in pair]


def run(program, given, direct):
    """Run gdsio once. Return GB/s. Raise MeasurementError with its complaint."""
    allowed = "CUFILE_ALLOW_COMPAT_MODE=" + ("false" if direct else "true")
    words = [external_tool.find("env") or "/usr/bin/env", allowed, "CUDA_DEVICE_ORDER=PCI_BUS_ID", program, *given]
    return read(external_tool.run(words, RUN_SECONDS, telling=complaint, cwd=given[1]))  # where it leaves its log


def complaint(data):
    """Return the first line with an error."""
    lines = [line.strip() for line in data.decode("utf-8", "backslashreplace").splitlines()]
    return next((line[:300] for line in lines if COMPLAINT.search(line)), external_tool.last_line(data))


def read(text):
    """Return the GB/s in gdsio's line of figures. Raise MeasurementError."""
    found = LINE.search(text)
    if not found or not float(found.group(3)):
        raise reporting.MeasurementError("gdsio printed no figures: " + complaint(text.encode("utf-8")))
    return float(found.group(3)) * UNITS[found.group(4)] / 1e9
