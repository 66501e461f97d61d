"""NVML through pynvml: a call is announced, made once, and its error becomes a fact. Never sets anything."""

import ctypes
import uuid

from nodetune.onhost.nvml import ABSENT, ARGUMENT_VERSION, GPU_IS_LOST, INVALID_ARGUMENT, NOT_FOUND, explain
from nodetune.onhost import nvml as onhost
from . import read

NOT_SUPPORTED = "not supported by this GPU or driver"
NEWER_BINDING = "needs a newer nvidia-ml-py on the controller"

MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The member of a field value with the number, by its type."""

FABRIC_STRUCTURES = ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t", "c_nvmlGpuFabricInfo_t")


def load():
    """Return the pynvml module. Raise ImportError."""
    return onhost.load(read.ROOT)


def as_fact(problem, extra_absent=()):
    """Return the fact for an NVML error."""
    if problem.value in ABSENT or problem.value in extra_absent:
        return read.absent(NOT_SUPPORTED)
    return read.unread("NVML: " + explain(problem))


class MissingFunctionError(Exception):
    """This pynvml lacks the function."""


class GpuLostError(Exception):
    """The GPU did not answer an earlier call and is not asked again."""


class Device:
    """One GPU: every call is made at most once (but `again`), and none after the GPU is lost."""

    def __init__(self, library, name, handle, step):
        self.library, self.name, self.handle, self.step = library, name, handle, step
        self.lost = ""
        self._answers = {}

    def call(self, function, *arguments):
        """Call NVML; pass another GPU as its Device. Raise NVMLError, MissingFunctionError or GpuLostError."""
        key = (function, arguments)
        if key not in self._answers:
            handles = [each.handle if isinstance(each, Device) else each for each in arguments]
            self._answers[key] = self._ask(function, handles)
        answer = self._answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def again(self, function):
        """Call NVML although it was called before, for an answer that changes."""
        self._answers.pop((function, ()), None)
        return self.call(function)

    def _ask(self, function, arguments):
        if self.lost:
            return GpuLostError(self.lost)
        if not hasattr(self.library, function):
            return MissingFunctionError(function)
        self.step("{} {}".format(function, self.name))
        try:
            return getattr(self.library, function)(self.handle, *arguments)
        except self.library.NVMLError as problem:
            if problem.value == GPU_IS_LOST:
                self.lost = explain(problem)
            return problem

    def fact(self, read_value, extra_absent=()):
        """Return the result of `read_value(device)` as a fact, unless it is one already."""
        try:
            return read_value(self)
        except self.library.NVMLError as problem:
            return as_fact(problem, extra_absent)
        except MissingFunctionError as function:
            return read.unread("{}: {}".format(function, NEWER_BINDING))
        except GpuLostError as text:
            return read.unread("NVML: {}".format(text))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as problem:
            return read.unread("unexpected answer of NVML: {!r}".format(problem))

    def fields(self, wanted):
        """Return field values by (field, scope); an error code is None for absent, text for unreadable."""
        values = self.call("nvmlDeviceGetFieldValues", tuple(wanted))
        return {each: self._field(values[at]) for at, each in enumerate(wanted)}

    def _field(self, value):
        if value.nvmlReturn == 0:
            return getattr(value.value, MEMBERS[value.valueType])
        if value.nvmlReturn in ABSENT or value.nvmlReturn in (INVALID_ARGUMENT, NOT_FOUND):
            return None
        return "NVML: " + explain(self.library.NVMLError(value.nvmlReturn))

    def fabric(self):
        """Return the fabric structure in the newest form that the driver supports. Raise its error."""
        problem = MissingFunctionError("nvmlDeviceGetGpuFabricInfoV")
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

    def filled(self, function, structure):
        """Return the structure of that name, filled by NVML. Raise its error."""
        kind = getattr(self.library, structure, None)
        if kind is None:
            raise MissingFunctionError(function)
        info = kind()
        problem = self._fill(function, info)
        if problem is not None:
            raise problem
        return info

    def _fill(self, function, info):
        """Make NVML fill a structure. Return None or the error."""
        answer = self._ask(function, (ctypes.byref(info),))
        return answer if isinstance(answer, Exception) else None


def uuid_text(numbers):
    return str(uuid.UUID(bytes=bytes(bytearray(numbers))))
