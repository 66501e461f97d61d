"""The CUDA driver API by ctypes: libcuda.so.1 comes with the driver, so a node needs no other software.

Names and argument types are those of cuda.h; where the library has a versioned symbol, it is called by that name.
Sizes are bytes, addresses plain integers. An error of the driver is a `CudaError` with the error's name and the current
operation. Operations on a GPU are in driver_gpu.
"""

import ctypes
import os

from nodetune.onhost.nvml import in_driver_container
from nodetune.measurements.host import report as reporting
from . import driver_prototypes

LIBRARY = "libcuda.so.1"

INT, U32, U64, SIZE, POINTER = (
    driver_prototypes.INT,
    driver_prototypes.U32,
    driver_prototypes.U64,
    driver_prototypes.SIZE,
    driver_prototypes.POINTER,
)
HANDLE, TEXT = driver_prototypes.HANDLE, driver_prototypes.TEXT

MULTIPROCESSORS, L2_SIZE, MAJOR = 16, 38, 75
"""Attributes of a device."""

OUT_OF_MEMORY, NO_DEVICE, NOT_READY, PEER_ALREADY_ENABLED = 2, 100, 600, 704


class CudaError(reporting.MeasurementError):
    """The driver refused a call; `code` is its CUresult, the text has its name, the operation and a hint."""

    def __init__(self, code, text):
        reporting.MeasurementError.__init__(self, text)
        self.code = code


class Driver:
    """The loaded and initialised library. Raises SkipError if it or all GPUs are missing, and CudaError.

    Compiled kernels are not stored in the user's cache (~/.nv), and GPUs are numbered in the order of the PCI bus.
    """

    def __init__(self, path=None):
        os.environ["CUDA_CACHE_DISABLE"] = "1"
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        self.library = load(path)
        self.functions = {name: self._function(name, types) for name, types in driver_prototypes.PROTOTYPES.items()}
        try:
            self.call("starting CUDA", "cuInit", 0)
        except CudaError as problem:
            if problem.code == NO_DEVICE:
                raise reporting.SkipError("CUDA sees no GPU here" + visible())
            raise
        self.version = self.get("asking for its version", "cuDriverGetVersion", INT)

    def _function(self, name, types):
        function = getattr(self.library, name, None)
        if function is None:
            raise reporting.MeasurementError(
                "libcuda has no {}: the driver is too old for these measurements".format(name)
            )
        function.argtypes, function.restype = types, INT
        return function

    def call(self, doing, name, *arguments):
        """Call the driver; `doing` describes the operation. Raise CudaError."""
        code = self.functions[name](*arguments)
        if code:
            raise CudaError(code, "{}: {}".format(doing, self.explain(code)))

    def get(self, doing, name, kind, *arguments):
        """Call a function that returns its result through its first argument. Raise CudaError."""
        answer = kind()
        self.call(doing, name, ctypes.byref(answer), *arguments)
        return answer.value

    def explain(self, code):
        """Return `CUDA_ERROR_OUT_OF_MEMORY (out of memory)`, with a hint if available."""
        text = "{} ({})".format(self._text("cuGetErrorName", code), self._text("cuGetErrorString", code))
        return text + (": " + driver_prototypes.ADVICE[code] if code in driver_prototypes.ADVICE else "")

    def _text(self, function, code):
        answer = TEXT()
        if self.functions[function](code, ctypes.byref(answer)) or not answer.value:
            return "CUDA error {}".format(code)
        return answer.value.decode("utf-8", "backslashreplace")


def load(path=None):
    """Load the library: `path`, by name, or from the driver's container. Raise SkipError or MeasurementError."""
    inside = in_driver_container(LIBRARY)
    problems = []
    for each in [path] if path else [LIBRARY] + [each for each in inside if os.path.exists(each)]:
        try:
            return ctypes.CDLL(each)
        except OSError as problem:
            problems.append(str(problem))
    if path or os.path.exists("/proc/driver/nvidia/version"):
        raise reporting.MeasurementError("libcuda cannot be loaded: {}".format("; ".join(problems)))
    text = "no {} on this host: it comes with the NVIDIA driver (libcuda1, libnvidia-compute-…)"
    raise reporting.SkipError(text.format(LIBRARY))


def visible():
    """Describe what hides GPUs from CUDA in this environment; empty if nothing does."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if value is None else " (CUDA_VISIBLE_DEVICES={} is set)".format(value or "''")


def in_words(size):
    """Format a size in bytes with two or three digits."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return "{:.3g} {}".format(size / factor, unit)
    return "{} bytes".format(size)
