"""A GPU by the CUDA driver API: its memory and its queued work.

Sizes are bytes, addresses plain integers, an error is a driver_api.CudaError that names the GPU. All work on one GPU goes to the
primary context of this process, which ends with the process.
"""

import contextlib
import ctypes
import threading

from nodetune.measurements.host import report as reporting
from . import driver_api

NON_BLOCKING, PORTABLE, CAPTURE_RELAXED = 1, 1, 2


def devices(driver):
    """Return all GPUs that CUDA sees, not yet opened. Raise SkipError if there is none."""
    count = driver.get("counting the GPUs", "cuDeviceGetCount", driver_api.INT)
    if not count:
        raise reporting.SkipError("CUDA sees no GPU here" + driver_api.visible())
    return [
        Gpu(driver, driver.get("asking for a GPU", "cuDeviceGet", driver_api.INT, number)) for number in range(count)
    ]


class Gpu:
    """One GPU. `name` is GPU0, GPU1 … in the order of the bus; `node` its NUMA node, None if unknown."""

    def __init__(self, driver, device):
        self.driver, self.device = driver, device
        self.bdf = self._text("cuDeviceGetPCIBusId").lower()
        self.model = self._text("cuDeviceGetName")
        self.name = "GPU {}".format(self.bdf)
        self.node = None
        self.users = lambda: ""
        self.context = None
        self._modules = {}
        self._taken = set()

    def _text(self, function):
        text = ctypes.create_string_buffer(128)
        self.driver.call("querying a GPU", function, text, len(text), self.device)
        return text.value.decode("utf-8", "backslashreplace")

    def attribute(self, number):
        return self.driver.get(self.name, "cuDeviceGetAttribute", driver_api.INT, number, self.device)

    def open(self):
        """Make a context, which takes a moment. Raise driver_api.CudaError."""
        self.context = self.get("opening it", "cuDevicePrimaryCtxRetain", driver_api.HANDLE, self.device)

    def use(self):
        """Make this GPU's context the current one of this thread."""
        if getattr(CURRENT, "context", None) != self.context:
            self.driver.call(self.name, "cuCtxSetCurrent", self.context)
            CURRENT.context = self.context

    def call(self, doing, name, *arguments):
        """Call the driver with this GPU's context current, errors named after the GPU. Raise driver_api.CudaError."""
        if self.context is not None:
            self.use()
        self.driver.call("{}: {}".format(self.name, doing), name, *arguments)

    def get(self, doing, name, kind, *arguments):
        answer = kind()
        self.call(doing, name, ctypes.byref(answer), *arguments)
        return answer.value

    # Memory

    def free_memory(self):
        """Return (free, total) bytes."""
        free, total = driver_api.SIZE(), driver_api.SIZE()
        self.call("asking for its free memory", "cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size):
        """Allocate memory on the GPU and return its address. Raise CudaError, with the users if memory is exhausted."""
        try:
            address = self.get(
                "allocating {}".format(driver_api.in_words(size)), "cuMemAlloc_v2", driver_api.POINTER, size
            )
        except driver_api.CudaError as problem:
            if problem.code != driver_api.OUT_OF_MEMORY:
                raise
            free, total = self.free_memory()
            text = "{}; {} of {} are free{}".format(
                problem, driver_api.in_words(free), driver_api.in_words(total), self.users()
            )
            raise driver_api.CudaError(problem.code, text)
        self._taken.add(address)
        return address

    def release(self, address):
        self._taken.discard(address)
        self.call("freeing memory", "cuMemFree_v2", address)

    def give_back(self):
        """Free all of its memory that is still allocated. Raise driver_api.CudaError."""
        for address in list(self._taken):
            self.release(address)

    @contextlib.contextmanager
    def memory(self, *sizes):
        """Allocate memory on the GPU for a while: one address for each size."""
        taken = []
        try:
            for size in sizes:
                taken.append(self.allocate(size))  # noqa: PERF401 - where one fails, those before it are freed
            yield taken
        finally:
            for address in taken:
                with contextlib.suppress(driver_api.CudaError):  # whatever broke the context was said before
                    self.release(address)

    def pinned(self, size):
        """Allocate host memory that every GPU can copy from and to directly, and return its address."""
        doing = "pinning {} of host memory (see ulimit -l and the memory limit of this login)".format(
            driver_api.in_words(size)
        )
        return self.get(doing, "cuMemHostAlloc", driver_api.HANDLE, size, PORTABLE)

    def unpin(self, address):
        self.call("freeing host memory", "cuMemFreeHost", address)

    def put(self, address, data):
        """Write bytes to the GPU's memory; when this returns, all streams see them."""
        self.call(
            "writing", "cuMemcpyHtoD_v2", address, ctypes.cast(ctypes.c_char_p(data), driver_api.HANDLE), len(data)
        )
        self.wait()

    def fetch(self, address, size):
        """Read bytes from the GPU's memory."""
        data = ctypes.create_string_buffer(size)
        self.call("reading", "cuMemcpyDtoH_v2", ctypes.addressof(data), address, size)
        return data.raw

    def poison(self, address, size, stream=None):
        """Overwrite the destination of a copy, so that a copy without effect is noticed."""
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
        return self.get("making a stream", "cuStreamCreate", driver_api.HANDLE, NON_BLOCKING)

    def event(self):
        return self.get("making an event", "cuEventCreate", driver_api.HANDLE, 0)

    def record(self, event, stream):
        self.call("recording an event", "cuEventRecord", event, stream)

    def after(self, stream, event):
        """Make later work on the stream wait for the event."""
        self.call("ordering streams", "cuStreamWaitEvent", stream, event, 0)

    def wait(self, stream=None):
        """Wait until all work of a stream (None: of the whole GPU) is done. Errors of that work are raised here."""
        if stream is None:
            self.call("waiting for its work", "cuCtxSynchronize")
        else:
            self.call("waiting for its work", "cuStreamSynchronize", stream)

    def done(self, event):
        """Return whether the work before an event is done. Raise driver_api.CudaError if it failed."""
        try:
            self.call("working", "cuEventQuery", event)
        except driver_api.CudaError as problem:
            if problem.code == driver_api.NOT_READY:
                return False
            raise
        return True

    def seconds(self, start, end):
        """Return the time between two completed events."""
        return self.get("timing", "cuEventElapsedTime", ctypes.c_float, start, end) / 1e3

    def graph(self, stream, queue):
        """Record what `queue` queues on the stream, and return a function that queues all of it at once."""
        self.call("recording a graph", "cuStreamBeginCapture_v2", stream, CAPTURE_RELAXED)
        try:
            queue()
        finally:
            recorded = driver_api.HANDLE()
            self.call("recording a graph", "cuStreamEndCapture", stream, ctypes.byref(recorded))
        made = self.get("making a graph", "cuGraphInstantiate_v2", driver_api.HANDLE, recorded, None, None, 0)
        return lambda: self.call("starting a graph", "cuGraphLaunch", made, stream)

    def module(self, text):
        """Compile PTX with the driver, once per process: {name: function}, filled on demand."""
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
        """Return whether this GPU can use the other's memory directly."""
        return bool(self.driver.get(self.name, "cuDeviceCanAccessPeer", driver_api.INT, self.device, other.device))

    def enable(self, other):
        """Let this GPU use the other's memory directly. Raise driver_api.CudaError."""
        try:
            self.call("enabling access to {}".format(other.name), "cuCtxEnablePeerAccess", other.context, 0)
        except driver_api.CudaError as problem:
            if problem.code != driver_api.PEER_ALREADY_ENABLED:
                raise


CURRENT = threading.local()
"""The context that is current in each thread: setting it again for every call would cost more than the call."""


class Module:
    """Kernels by name."""

    def __init__(self, gpu, text):
        self._gpu, self._functions = gpu, {}
        self._handle = gpu.get("compiling kernels", "cuModuleLoadData", driver_api.HANDLE, text.encode("ascii"))

    def __getitem__(self, name):
        if name not in self._functions:
            arguments = (driver_api.HANDLE, self._handle, name.encode("ascii"))
            self._functions[name] = self._gpu.get("finding the kernel " + name, "cuModuleGetFunction", *arguments)
        return self._functions[name]
