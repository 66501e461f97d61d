"""Find the GPUs, with the same names as elsewhere in nodetune, and open them for measuring.

GPU0, GPU1 … are NVML's (nvidia-smi's) numbers, also where CUDA_VISIBLE_DEVICES leaves CUDA fewer. Without NVML the
numbers are those of the driver's list in /proc, which has the same order: that of the PCI bus.
"""

import contextlib
import os
import threading

from nodetune.onhost import files
from nodetune.onhost import nvml as onhost
from nodetune.measurements.host import gpu_other_load, numa
from nodetune.measurements.host import report as reporting
from . import driver_api, driver_gpu

DRIVER_GPUS = "/proc/driver/nvidia/gpus"


def opened(options, report, watched=True):
    """Return the GPUs to measure, with contexts. Report and leave out those that cannot be opened.

    `watched`: whether to report other processes that compute on them meanwhile. `options["gpus"]` has the numbers or
    names of the wanted GPUs. Raise SkipError if there is no GPU, MeasurementError if a wanted GPU does not exist.
    """
    report.step("loading libcuda")
    driver = driver_api.Driver(options.get("libcuda"))
    found = _named(driver_gpu.devices(driver), known(report))
    wanted = _wanted(options.get("gpus"), found)
    usable = [gpu for gpu in wanted if not _partitioned(gpu, report)]
    watch = gpu_other_load.Watch([gpu.seen for gpu in usable]) if watched else None
    _open(usable, report)
    if watch:
        watch.start()
        report.gpu_watch, report.opened = watch, usable
    return [gpu for gpu in usable if gpu.context is not None]


def nvml(report):
    """Return pynvml, initialised; None if it or NVML's library is missing or fails: reports then have less data."""
    try:
        library = onhost.load()
    except ImportError:
        return None
    report.step("nvmlInit")
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    return library


def known(report):
    """Return {BDF: Seen} of all GPUs of this host, including those hidden from CUDA."""
    library = nvml(report)
    if library is not None:
        try:
            handles = [library.nvmlDeviceGetHandleByIndex(number) for number in range(library.nvmlDeviceGetCount())]
            seen = [Seen("GPU{}".format(number), library, handle) for number, handle in enumerate(handles)]
            return {bdf(library.nvmlDeviceGetPciInfo(each.handle).busId): each for each in seen}
        except library.NVMLError:
            pass
    return {bdf(name): Seen("GPU{}".format(number)) for number, name in enumerate(files.names(DRIVER_GPUS))}


class Seen:
    """A GPU as NVML sees it; without NVML (`library` is None) only its name."""

    def __init__(self, name, library=None, handle=None):
        self.name, self.library, self.handle = name, library, handle

    def ask(self, function, *arguments):
        """Return NVML's answer, or None."""
        if self.library is None or not hasattr(self.library, function):
            return None
        try:
            return getattr(self.library, function)(self.handle, *arguments)
        except self.library.NVMLError:
            return None

    def partitioned(self):
        return bool((self.ask("nvmlDeviceGetMigMode") or [0])[0])

    def free_memory(self):
        """Return the free bytes, or None."""
        found = self.ask("nvmlDeviceGetMemoryInfo")
        return int(found.free) if found else None

    def users(self):
        """Describe the other processes that compute here: `: used by process 71 (python3, 120 GiB)`."""
        found = [words for pid, words in self.computing().items() if pid != os.getpid()]
        return ": used by " + ", ".join(found) if found else ""

    def computing(self):
        """Return {process id: description} of all processes that compute here."""
        found = self.ask("nvmlDeviceGetComputeRunningProcesses") or []
        return {each.pid: _process(each.pid, each.usedGpuMemory) for each in found}

    def event_reasons(self):
        """Return the current mask of reasons for low clocks (onhost.nvml.EVENT_REASONS), or None."""
        found = self.ask("nvmlDeviceGetCurrentClocksEventReasons")
        return self.ask("nvmlDeviceGetCurrentClocksThrottleReasons") if found is None else found


def _process(pid, used):
    try:
        with open("/proc/{}/comm".format(pid)) as file:
            name = file.read().strip()
    except OSError:
        name = "not visible from here"
    return "process {} ({}{})".format(pid, name, ", " + driver_api.in_words(used) if used else "")


def bdf(text):
    """Convert `00000000:18:00.0`, in any case and type, to `0000:18:00.0`."""
    domain, _, rest = onhost.decoded(text).lower().partition(":")
    return "{:04x}:{}".format(int(domain, 16), rest)


def _named(found, seen):
    """Return CUDA's GPUs with their names, in the order of the names."""
    numbers = {each: number for number, each in enumerate(sorted(seen or [bdf(gpu.bdf) for gpu in found]))}
    for gpu in found:
        gpu.bdf = bdf(gpu.bdf)
        gpu.seen = seen.get(gpu.bdf) or Seen("GPU{}".format(numbers.get(gpu.bdf, gpu.device)))
        gpu.name, gpu.users, gpu.node = gpu.seen.name, gpu.seen.users, numa.gpu_node(gpu.bdf)
    return sorted(found, key=lambda gpu: int(gpu.name[3:]))


def _wanted(asked, found):
    """Return the requested GPUs, by number or name. Raise MeasurementError."""
    if asked is None:
        return found
    by_name = {gpu.name: gpu for gpu in found}
    names = ["GPU{}".format(str(each).upper().replace("GPU", "")) for each in asked]
    missing = [name for name in names if name not in by_name]
    if missing:
        text = "{} not found: CUDA sees {}{}"
        raise reporting.MeasurementError(
            text.format(", ".join(missing), ", ".join(sorted(by_name)), driver_api.visible())
        )
    return [by_name[name] for name in names]


def _partitioned(gpu, report):
    if gpu.seen.partitioned():
        report.skip("MIG is on: --only mig measures the instances", gpu.name)
        return True
    return False


def _open(found, report):
    """Make all contexts at once, which takes only as long as the slowest."""
    threads = {gpu.name: threading.Thread(target=_open_one, args=(gpu, report), daemon=True) for gpu in found}
    for thread in threads.values():
        thread.start()
    for name, thread in threads.items():
        report.step("opening " + ", ".join(other for other in threads if threads[other].is_alive() or other == name))
        thread.join()


def _open_one(gpu, report):
    with apart(report, gpu.name):
        gpu.open()


@contextlib.contextmanager
def apart(report, subject, metric=None):
    """Report an error of one GPU or pair, and continue with the others."""
    try:
        yield
    except reporting.MeasurementError as problem:
        report.failed(str(problem), subject, metric)
    except reporting.SkipError as reason:
        report.skip(str(reason), subject, metric)


def prepared(found, report, doing, make):
    """Return what `make` makes of each GPU. Report those for which it fails, and continue with the others."""
    made = []
    for gpu in found:
        report.step("{}: {}".format(gpu.name, doing))
        with apart(report, gpu.name):
            made.append(make(gpu))
    return made


@contextlib.contextmanager
def losing(report, subject, members, member):
    """Report like `apart`, and remove a member that fails so that it is not used again."""
    try:
        yield
    except reporting.MeasurementError as problem:
        report.failed(str(problem), subject)
        del members[member]


class Repeats:
    """Work given to a stream over and over, each repeat timed by the GPU itself; the first one warms up and does not count.

    All of it is queued at once: the GPU never waits for the interpreter, and other GPUs can be given theirs meanwhile.
    """

    def __init__(self, gpu, stream, work, repeats, warm=True):
        self.gpu, self.stream = gpu, stream
        self.events = [gpu.event() for _ in range(repeats + 1)]
        if warm:
            work()
        gpu.record(self.events[0], stream)
        for event in self.events[1:]:
            work()
            gpu.record(event, stream)

    def seconds(self):
        """Return how long each repeat took. Wait for all of them."""
        self.gpu.wait(self.stream)
        return [self.gpu.seconds(start, end) for start, end in zip(self.events, self.events[1:])]


def rates(amount, seconds, unit=1e9):
    """Divide an amount by each time, in units of `unit` per second."""
    return [amount / each / unit for each in seconds]


def fitting(gpu, wanted, buffers, share=0.5):
    """Return the size of each buffer: as requested, or what fits into a share of the free memory, in whole MiB.

    Raise MeasurementError if even 16 MiB are not free, with the processes that use the memory.
    """
    free, total = gpu.free_memory()
    size = min(wanted, int(free * share / buffers)) >> 20 << 20
    if size < 16 << 20:
        text = "{}: its memory is in use: {} of {} are free{}"
        raise reporting.MeasurementError(
            text.format(gpu.name, driver_api.in_words(free), driver_api.in_words(total), gpu.users())
        )
    return size


WRONG = "data came back wrong"
"""The most serious fault: the text that identifies it."""
