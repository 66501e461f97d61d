"""Which GPUs there are, under the names that the rest of nodetune gives them, opened for measuring.

GPU0, GPU1 … are NVML's (nvidia-smi's) numbers, also where CUDA_VISIBLE_DEVICES leaves CUDA fewer. Without NVML the
numbers are those of the driver's list in /proc, which has the same order: that of the PCI bus.
"""

import contextlib
import ctypes
import os
import threading

from . import cuda, cuda_gpu, numa
from . import report as reporting

DRIVER_GPUS = "/proc/driver/nvidia/gpus"
NVML = "libnvidia-ml.so.1"


def opened(options, report):
    """The GPUs to measure, with contexts. Those that cannot be opened are reported and left out.

    `options["gpus"]`: numbers or names of those wanted. Raises Skip where there is none, Fault where one is asked for
    that is not there.
    """
    report.step("loading libcuda")
    driver = cuda.Driver(options.get("libcuda"))
    found = _named(cuda_gpu.devices(driver), known(report))
    wanted = _wanted(options.get("gpus"), found)
    usable = [gpu for gpu in wanted if not _partitioned(gpu, report)]
    _open(usable, report)
    return [gpu for gpu in usable if gpu.context is not None]


def nvml(report):
    """pynvml, started; None where it or NVML's library is missing or refuses: then there is less to tell, no less to measure."""
    try:
        import pynvml
    except ImportError:
        return None
    _load_from_driver_container()
    report.step("nvmlInit")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _load_from_driver_container():
    """A library that is loaded by its path is what a later search for its name finds."""
    for path in [NVML] + [os.path.join(cuda.DRIVER_CONTAINER, folder, NVML) for folder in cuda.FOLDERS]:
        with contextlib.suppress(OSError):
            ctypes.CDLL(path)
            return


def known(report):
    """{BDF: Seen} of all GPUs of this host, also those that CUDA does not show."""
    library = nvml(report)
    if library is not None:
        try:
            handles = [library.nvmlDeviceGetHandleByIndex(number) for number in range(library.nvmlDeviceGetCount())]
            seen = [Seen("GPU{}".format(number), library, handle) for number, handle in enumerate(handles)]
            return {bdf(library.nvmlDeviceGetPciInfo(each.handle).busId): each for each in seen}
        except library.NVMLError:
            pass
    names = sorted(os.listdir(DRIVER_GPUS)) if os.path.isdir(DRIVER_GPUS) else []
    return {bdf(name): Seen("GPU{}".format(number)) for number, name in enumerate(names)}


class Seen:
    """A GPU as NVML sees it; without NVML (`library` is None) only its name."""

    def __init__(self, name, library=None, handle=None):
        self.name, self.library, self.handle = name, library, handle

    def ask(self, function, *arguments):
        """NVML's answer; None where it has none."""
        if self.library is None or not hasattr(self.library, function):
            return None
        try:
            return getattr(self.library, function)(self.handle, *arguments)
        except self.library.NVMLError:
            return None

    def partitioned(self):
        return bool((self.ask("nvmlDeviceGetMigMode") or [0])[0])

    def users(self):
        """The other processes that compute here, in words: `: used by process 71 (python3, 120 GiB)`."""
        found = [each for each in self.ask("nvmlDeviceGetComputeRunningProcesses") or [] if each.pid != os.getpid()]
        return ": used by " + ", ".join(_process(each.pid, each.usedGpuMemory) for each in found) if found else ""


def _process(pid, used):
    try:
        with open("/proc/{}/comm".format(pid)) as file:
            name = file.read().strip()
    except OSError:
        name = "not visible from here"
    return "process {} ({}{})".format(pid, name, ", " + cuda.in_words(used) if used else "")


def bdf(text):
    """`00000000:18:00.0`, in whatever case and type, as `0000:18:00.0`."""
    text = text.decode("ascii") if isinstance(text, bytes) else text
    domain, _, rest = text.lower().partition(":")
    return "{:04x}:{}".format(int(domain, 16), rest)


def _named(found, seen):
    """CUDA's GPUs with their names, in the order of these."""
    numbers = {each: number for number, each in enumerate(sorted(seen or [bdf(gpu.bdf) for gpu in found]))}
    for gpu in found:
        gpu.bdf = bdf(gpu.bdf)
        gpu.seen = seen.get(gpu.bdf) or Seen("GPU{}".format(numbers.get(gpu.bdf, gpu.device)))
        gpu.name, gpu.users, gpu.node = gpu.seen.name, gpu.seen.users, numa.gpu_node(gpu.bdf)
    return sorted(found, key=lambda gpu: int(gpu.name[3:]))


def _wanted(asked, found):
    """The GPUs asked for by number or name. Raises Fault."""
    if asked is None:
        return found
    by_name = {gpu.name: gpu for gpu in found}
    names = ["GPU{}".format(str(each).upper().replace("GPU", "")) for each in asked]
    missing = [name for name in names if name not in by_name]
    if missing:
        text = "{} not found: CUDA sees {}{}"
        raise reporting.Fault(text.format(", ".join(missing), ", ".join(sorted(by_name)), cuda.visible()))
    return [by_name[name] for name in names]


def _partitioned(gpu, report):
    if gpu.seen.partitioned():
        report.skip("MIG is on: an instance has a part of the GPU, and no figure to compare it with", gpu.name)
        return True
    return False


def _open(found, report):
    """Make all contexts at once, which takes as long as one of them, and no longer than the worst."""
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
    """What goes wrong with one GPU, or pair, is reported and costs the others nothing."""
    try:
        yield
    except reporting.Fault as problem:
        report.failed(str(problem), subject, metric)
    except reporting.Skip as reason:
        report.skip(str(reason), subject, metric)


@contextlib.contextmanager
def losing(report, subject, members, member):
    """Like apart; and what went wrong is taken out of the members, so that nothing more is asked of it."""
    try:
        yield
    except reporting.Fault as problem:
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
        """How long each repeat took. Waits for them all."""
        self.gpu.wait(self.stream)
        return [self.gpu.seconds(start, end) for start, end in zip(self.events, self.events[1:])]


def rates(amount, seconds, unit=1e9):
    """An amount over each time, in units of `unit` a second."""
    return [amount / each / unit for each in seconds]


def fitting(gpu, wanted, buffers, share=0.5):
    """The size of each of some buffers: as wanted, or what fits into a share of the free memory, in whole MiB.

    Raises Fault where not even 16 MiB are to be had, naming who has the memory.
    """
    free, total = gpu.free_memory()
    size = min(wanted, int(free * share / buffers)) >> 20 << 20
    if size < 16 << 20:
        text = "{}: its memory is taken: {} of {} are free{}"
        raise reporting.Fault(text.format(gpu.name, cuda.in_words(free), cuda.in_words(total), gpu.users()))
    return size


WRONG = "data came back wrong"
"""The gravest thing to find: the text by which it is known."""
