"""NVML through pynvml: a call is named before it is made, made once, and its error becomes a fact. Never sets anything."""

import ctypes
import uuid

from . import read

NOT_SUPPORTED = "not supported by this GPU or driver"
NEWER_BINDING = "needs a newer nvidia-ml-py where nodetune runs"

INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED = 2, 4, 6, 9
LIBRARY_NOT_FOUND, GPU_IS_LOST, VERSION_MISMATCH, ARGUMENT_VERSION = 12, 15, 18, 25
ABSENT = (3, 13, 22, 26)
"""Not supported, function not found (an older driver), no ECC in a vGPU, deprecated (a newer driver)."""

MEANINGS = {
    NO_PERMISSION: "no permission: needs root (--become)",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    VERSION_MISMATCH: "the NVML library and the kernel module are of different versions",
}

MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Where a field value keeps its number, by its type."""

FABRIC_STRUCTURES = ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t", "c_nvmlGpuFabricInfo_t")


LIBRARY = "libnvidia-ml.so.1"
DRIVER_CONTAINER = "/run/nvidia/driver"


def load():
    """The pynvml module. Raises ImportError."""
    import pynvml

    _load_from_driver_container()
    return pynvml


def _load_from_driver_container():
    """Where the driver came in a container (NVIDIA's GPU Operator), its libraries are not in the system's folders.

    A library that is loaded by its path is what a later search for its name finds.
    """
    folders = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")
    there = ["{}/{}/{}".format(DRIVER_CONTAINER, folder, LIBRARY) for folder in folders]
    loads(LIBRARY) or any(loads(read.ROOT + path) for path in there if read.exists(path))


def loads(library):
    try:
        return bool(ctypes.CDLL(library))
    except OSError:
        return False


def decoded(text):
    return text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text


def explain(problem):
    """An NVML error in words."""
    return MEANINGS.get(problem.value) or decoded(str(problem))


def as_fact(problem, extra_absent=()):
    """The fact that an NVML error stands for."""
    if problem.value in ABSENT or problem.value in extra_absent:
        return read.absent(NOT_SUPPORTED)
    return read.unread("NVML: " + explain(problem))


class Missing(Exception):
    """A call that this pynvml does not have."""


class Lost(Exception):
    """The GPU did not answer an earlier call: it is not asked again."""


class Device:
    """One GPU: every call is made at most once, and none after the GPU was found to be lost."""

    def __init__(self, library, name, handle, step):
        self.library, self.name, self.handle, self.step = library, name, handle, step
        self.lost = ""
        self._answers = {}

    def call(self, function, *arguments):
        """What NVML answers; another GPU is given as its Device. Raises NVML's error, Missing or Lost."""
        key = (function, arguments)
        if key not in self._answers:
            handles = [each.handle if isinstance(each, Device) else each for each in arguments]
            self._answers[key] = self._ask(function, handles)
        answer = self._answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ask(self, function, arguments):
        if self.lost:
            return Lost(self.lost)
        if not hasattr(self.library, function):
            return Missing(function)
        self.step("{} {}".format(function, self.name))
        try:
            return getattr(self.library, function)(self.handle, *arguments)
        except self.library.NVMLError as problem:
            if problem.value == GPU_IS_LOST:
                self.lost = explain(problem)
            return problem

    def fact(self, read_value, extra_absent=()):
        """The fact that `read_value(device)` stands for; it may return a fact of its own."""
        try:
            return read_value(self)
        except self.library.NVMLError as problem:
            return as_fact(problem, extra_absent)
        except Missing as function:
            return read.unread("{}: {}".format(function, NEWER_BINDING))
        except Lost as text:
            return read.unread("NVML: {}".format(text))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as problem:
            return read.unread("NVML gave an unexpected answer: {!r}".format(problem))

    def fields(self, wanted):
        """Field values by (field, scope); an error code stands as None when absent, as text when not readable."""
        values = self.call("nvmlDeviceGetFieldValues", tuple(wanted))
        return {each: self._field(values[at]) for at, each in enumerate(wanted)}

    def _field(self, value):
        if value.nvmlReturn == 0:
            return getattr(value.value, MEMBERS[value.valueType])
        if value.nvmlReturn in ABSENT or value.nvmlReturn in (INVALID_ARGUMENT, NOT_FOUND):
            return None
        return "NVML: " + explain(self.library.NVMLError(value.nvmlReturn))

    def fabric(self):
        """The fabric structure in the newest form that the driver knows. Raises its error, Missing or Lost."""
        problem = Missing("nvmlDeviceGetGpuFabricInfoV")
        for structure in FABRIC_STRUCTURES:
            kind = getattr(self.library, structure, None)
            if kind is None:
                continue
            function = "nvmlDeviceGetGpuFabricInfo" + ("" if structure == FABRIC_STRUCTURES[-1] else "V")
            info = kind()
            problem = self._fill(function, info)
            if problem is None:
                return info
            if getattr(problem, "value", None) not in (13, ARGUMENT_VERSION):
                break
        raise problem

    def sram(self):
        """The SRAM error structure. Raises its error, Missing or Lost."""
        kind = getattr(self.library, "c_nvmlEccSramErrorStatus_v1_t", None)
        if kind is None:
            raise Missing("nvmlDeviceGetSramEccErrorStatus")
        info = kind()
        problem = self._fill("nvmlDeviceGetSramEccErrorStatus", info)
        if problem is not None:
            raise problem
        return info

    def _fill(self, function, info):
        """Have NVML fill a structure: None, or the error."""
        answer = self._ask(function, (ctypes.byref(info),))
        return answer if isinstance(answer, Exception) else None


def uuid_text(numbers):
    return str(uuid.UUID(bytes=bytes(bytearray(numbers))))
