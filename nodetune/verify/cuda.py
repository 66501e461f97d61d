"""The CUDA driver API by ctypes: libcuda.so.1 comes with the driver, so that a node needs nothing else installed.

Names and argument types are those of cuda.h; where the library has a versioned symbol, it is called by that name.
Sizes are bytes, addresses plain integers. An error of the driver is a `Refused` with the error's name and what was being
done. All work on one GPU goes to the primary context of this process, which ends with the process.
"""

import contextlib
import ctypes
import os
import threading

from . import cuda_calls
from . import report as reporting

LIBRARY = "libcuda.so.1"
DRIVER_CONTAINER = "/run/nvidia/driver"
FOLDERS = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")

INT, U32, U64, SIZE, POINTER = cuda_calls.INT, cuda_calls.U32, cuda_calls.U64, cuda_calls.SIZE, cuda_calls.POINTER
HANDLE, TEXT = cuda_calls.HANDLE, cuda_calls.TEXT

MULTIPROCESSORS, NUMA_NODE, MAJOR, MINOR = 16, 134, 75, 76
"""Attributes of a device."""

NON_BLOCKING, PORTABLE = 1, 1
OUT_OF_MEMORY, NO_DEVICE, NOT_READY, PEER_ALREADY_ENABLED = 2, 100, 600, 704


class Refused(reporting.Fault):
    """The driver refused a call; `code` is its number (CUresult), the text names it, what was being done, and what helps."""

    def __init__(self, code, text):
        reporting.Fault.__init__(self, text)
        self.code = code


class Driver:
    """The loaded and initialised library. Raises Skip where it, or any GPU, is missing, and Refused.

    Compiled kernels are not kept in the user's cache (~/.nv), and GPUs are numbered in the order of the PCI bus.
    """

    def __init__(self, path=None):
        os.environ["CUDA_CACHE_DISABLE"] = "1"
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        self.library = load(path)
        self.functions = {name: self._function(name, types) for name, types in cuda_calls.PROTOTYPES.items()}
        try:
            self.call("starting CUDA", "cuInit", 0)
        except Refused as problem:
            if problem.code == NO_DEVICE:
                raise reporting.Skip("CUDA sees no GPU here" + visible())
            raise
        self.version = self.get("asking for its version", "cuDriverGetVersion", INT)

    def _function(self, name, types):
        function = getattr(self.library, name, None)
        if function is None:
            raise reporting.Fault("libcuda has no {}: the driver is too old for these measurements".format(name))
        function.argtypes, function.restype = types, INT
        return function

    def call(self, doing, name, *arguments):
        """Call the driver; `doing` says for what. Raises Refused."""
        code = self.functions[name](*arguments)
        if code:
            raise Refused(code, "{}: {}".format(doing, self.explain(code)))

    def get(self, doing, name, kind, *arguments):
        """Call a function that answers through its first argument. Raises Refused."""
        answer = kind()
        self.call(doing, name, ctypes.byref(answer), *arguments)
        return answer.value

    def explain(self, code):
        """`CUDA_ERROR_OUT_OF_MEMORY (out of memory)`, with advice where there is some."""
        text = "{} ({})".format(self._text("cuGetErrorName", code), self._text("cuGetErrorString", code))
        return text + (": " + cuda_calls.ADVICE[code] if code in cuda_calls.ADVICE else "")

    def _text(self, function, code):
        answer = TEXT()
        if self.functions[function](code, ctypes.byref(answer)) or not answer.value:
            return "CUDA error {}".format(code)
        return answer.value.decode("utf-8", "backslashreplace")

    def devices(self):
        """All GPUs that CUDA sees, not yet opened."""
        count = self.get("counting the GPUs", "cuDeviceGetCount", INT)
        if not count:
            raise reporting.Skip("CUDA sees no GPU here" + visible())
        return [Gpu(self, self.get("asking for a GPU", "cuDeviceGet", INT, number)) for number in range(count)]


def load(path=None):
    """The library: `path`, by its name, or from the driver's container (NVIDIA's GPU Operator). Raises Skip, Fault."""
    inside = [os.path.join(DRIVER_CONTAINER, folder, LIBRARY) for folder in FOLDERS]
    problems = []
    for each in [path] if path else [LIBRARY] + [each for each in inside if os.path.exists(each)]:
        try:
            return ctypes.CDLL(each)
        except OSError as problem:
            problems.append(str(problem))
    if path or os.path.exists("/proc/driver/nvidia/version"):
        raise reporting.Fault("libcuda cannot be loaded: {}".format("; ".join(problems)))
    text = "no {} on this host: it comes with the NVIDIA driver (libcuda1, libnvidia-compute-…)"
    raise reporting.Skip(text.format(LIBRARY))


def visible():
    """What hides GPUs from CUDA in this environment, in words; empty where nothing does."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if value is None else " (CUDA_VISIBLE_DEVICES={} is set)".format(value or "''")


class Gpu:
    """One GPU. `name` is GPU0, GPU1 … in the order of the bus; `node` its NUMA node, None where that is not known."""

    def __init__(self, driver, device):
        self.driver, self.device = driver, device
        self.bdf = self._text("cuDeviceGetPCIBusId").lower()
        self.model = self._text("cuDeviceGetName")
        self.name = "GPU {}".format(self.bdf)
        self.node = None
        self.users = lambda: ""
        self.context = None
        self._modules = {}

    def _text(self, function):
        text = ctypes.create_string_buffer(128)
        self.driver.call("asking a GPU what it is", function, text, len(text), self.device)
        return text.value.decode("utf-8", "backslashreplace")

    def attribute(self, number):
        return self.driver.get(self.name, "cuDeviceGetAttribute", INT, number, self.device)

    def open(self):
        """Make a context, which takes a moment. Raises Refused."""
        self.context = self.get("opening it", "cuDevicePrimaryCtxRetain", HANDLE, self.device)

    def use(self):
        """Make this GPU's context the current one of this thread."""
        if getattr(CURRENT, "context", None) != self.context:
            self.driver.call(self.name, "cuCtxSetCurrent", self.context)
            CURRENT.context = self.context

    def call(self, doing, name, *arguments):
        """Call the driver with this GPU's context current, errors named after the GPU. Raises Refused."""
        if self.context is not None:
            self.use()
        self.driver.call("{}: {}".format(self.name, doing), name, *arguments)

    def get(self, doing, name, kind, *arguments):
        answer = kind()
        self.call(doing, name, ctypes.byref(answer), *arguments)
        return answer.value

    # Memory

    def free_memory(self):
        """(free, total) bytes."""
        free, total = SIZE(), SIZE()
        self.call("asking for its free memory", "cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size):
        """Memory on the GPU: its address. Raises Refused; where memory is out it says who has it."""
        try:
            return self.get("allocating {}".format(in_words(size)), "cuMemAlloc_v2", POINTER, size)
        except Refused as problem:
            if problem.code != OUT_OF_MEMORY:
                raise
            free, total = self.free_memory()
            text = "{}; {} of {} are free{}".format(problem, in_words(free), in_words(total), self.users())
            raise Refused(problem.code, text)

    def release(self, address):
        self.call("freeing memory", "cuMemFree_v2", address)

    @contextlib.contextmanager
    def memory(self, *sizes):
        """Memory on the GPU for a while: one address for each size."""
        taken = []
        try:
            for size in sizes:
                taken.append(self.allocate(size))  # noqa: PERF401 - where one fails, those before it are freed
            yield taken
        finally:
            for address in taken:
                with contextlib.suppress(Refused):  # whatever broke the context was said before
                    self.release(address)

    def pinned(self, size):
        """Host memory that every GPU can copy from and to directly: its address."""
        doing = "pinning {} of host memory (see ulimit -l and the memory limit of this login)".format(in_words(size))
        return self.get(doing, "cuMemHostAlloc", HANDLE, size, PORTABLE)

    def unpin(self, address):
        self.call("freeing host memory", "cuMemFreeHost", address)

    def put(self, address, data):
        """Write bytes to the GPU's memory; they are there when this returns, for all streams."""
        self.call("writing", "cuMemcpyHtoD_v2", address, ctypes.cast(ctypes.c_char_p(data), HANDLE), len(data))
        self.wait()

    def fetch(self, address, size):
        """Read bytes from the GPU's memory."""
        data = ctypes.create_string_buffer(size)
        self.call("reading", "cuMemcpyDtoH_v2", ctypes.addressof(data), address, size)
        return data.raw

    def poison(self, address, size, stream=None):
        """Overwrite what a copy is to bring, so that a copy that does nothing is seen."""
        self.call("filling memory", "cuMemsetD8Async", address, 0xA5, size, stream)

    # Work, queued on a stream

    def to_gpu(self, address, host, size, stream):
        self.call("copying to the GPU", "cuMemcpyHtoDAsync_v2", address, host, size, stream)

    def to_host(self, host, address, size, stream):
        self.call("copying to the host", "cuMemcpyDtoHAsync_v2", host, address, size, stream)

    def within(self, to, address, size, stream):
        self.call("copying within the GPU", "cuMemcpyDtoDAsync_v2", to, address, size, stream)

    def to_peer(self, other, to, address, size, stream):
        doing = "copying to {}".format(other.name)
        self.call(doing, "cuMemcpyPeerAsync", to, other.context, address, self.context, size, stream)

    def stream(self):
        return self.get("making a stream", "cuStreamCreate", HANDLE, NON_BLOCKING)

    def event(self):
        return self.get("making an event", "cuEventCreate", HANDLE, 0)

    def record(self, event, stream):
        self.call("recording an event", "cuEventRecord", event, stream)

    def after(self, stream, event):
        """What is given to the stream from now on waits for the event."""
        self.call("ordering streams", "cuStreamWaitEvent", stream, event, 0)

    def wait(self, stream=None):
        """Wait until all work of a stream (None: of the whole GPU) is done. Errors of that work come up here."""
        if stream is None:
            self.call("waiting for its work", "cuCtxSynchronize")
        else:
            self.call("waiting for its work", "cuStreamSynchronize", stream)

    def done(self, event):
        """Whether the work before an event is done. Raises Refused where it went wrong."""
        try:
            self.call("working", "cuEventQuery", event)
        except Refused as problem:
            if problem.code == NOT_READY:
                return False
            raise
        return True

    def seconds(self, start, end):
        """The time between two events that are done."""
        return self.get("timing", "cuEventElapsedTime", ctypes.c_float, start, end) / 1e3

    def module(self, text):
        """PTX compiled by the driver: {name: function} filled as kernels are asked for. Compiled once a process."""
        if text not in self._modules:
            self._modules[text] = Module(self, text)
        return self._modules[text]

    def launch(self, function, blocks, threads, arguments, stream):
        """Start a kernel; `arguments` are ctypes values."""
        places = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(each) for each in arguments])
        shape = (blocks, 1, 1, threads, 1, 1, 0, stream)
        self.call("starting a kernel", "cuLaunchKernel", function, *shape + (ctypes.addressof(places), None))

    # Other GPUs

    def reaches(self, other):
        """Whether this GPU can use the other's memory directly."""
        return bool(self.driver.get(self.name, "cuDeviceCanAccessPeer", INT, self.device, other.device))

    def enable(self, other):
        """Let this GPU use the other's memory directly. Raises Refused."""
        try:
            self.call("opening the way to {}".format(other.name), "cuCtxEnablePeerAccess", other.context, 0)
        except Refused as problem:
            if problem.code != PEER_ALREADY_ENABLED:
                raise


CURRENT = threading.local()
"""The context that is current in each thread: setting it again for every call would cost more than the call."""


class Module:
    """Kernels by name."""

    def __init__(self, gpu, text):
        self._gpu, self._functions = gpu, {}
        self._handle = gpu.get("compiling kernels", "cuModuleLoadData", HANDLE, text.encode("ascii"))

    def __getitem__(self, name):
        if name not in self._functions:
            arguments = (HANDLE, self._handle, name.encode("ascii"))
            self._functions[name] = self._gpu.get("finding the kernel " + name, "cuModuleGetFunction", *arguments)
        return self._functions[name]


def in_words(size):
    """A size in bytes as a text with two or three digits."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return "{:.3g} {}".format(size / factor, unit)
    return "{} bytes".format(size)
