"""NVML for programs on a host: pynvml, its library, and descriptions of its errors. Never sets anything."""

import ctypes
import os
import re

LIBRARY = "libnvidia-ml.so.1"
DRIVER_CONTAINER = "/run/nvidia/driver"
"""Where NVIDIA's GPU Operator mounts a driver from a container, which is not in the system's folders."""
FOLDERS = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")

INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED = 2, 4, 6, 9
LIBRARY_NOT_FOUND, GPU_IS_LOST, VERSION_MISMATCH, ARGUMENT_VERSION = 12, 15, 18, 25
ABSENT = (3, 13, 22, 26)
"""Not supported, function not found (an older driver), no ECC in a vGPU, deprecated (a newer driver)."""
OF_GPU = (8, 11, 14, GPU_IS_LOST, 16)
"""Errors that only a GPU causes: no power, an interrupt problem, a corrupted infoROM, lost, needs a reset. The others may
come from the calling process: 17 and 999 without files to open (seen: H200), 20 and 23 without memory, 10 without time.
"""
OF_DRIVER = (DRIVER_NOT_LOADED, VERSION_MISMATCH) + OF_GPU
"""Errors of nvmlInit that the calling process cannot cause."""

ERRORS = {
    NO_PERMISSION: "no permission: needs root (--become)",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    VERSION_MISMATCH: "the NVML library and the kernel module are of different versions",
}

EVENT_REASONS = (
    (0x001, "idle"),
    (0x002, "applications_clocks_setting"),
    (0x004, "sw_power_cap"),
    (0x008, "hw_slowdown"),
    (0x010, "sync_boost"),
    (0x020, "sw_thermal_slowdown"),
    (0x040, "hw_thermal_slowdown"),
    (0x080, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
)
"""The bits of the mask of reasons for low clocks."""

HELD_BACK = {"power": 74, "thermal": 75, "reliability": 79}
SLOWDOWNS = ("sw_thermal", "hw_thermal", "power_brake")
SLOWDOWNS_OF_575, SLOWDOWNS_NOW = 251, 269
"""Fields that count the nanoseconds for which something held the clocks back. Those of slowdowns came with 575, and 580.82
moved them: nvidia-ml-py 12.575.51 and 13.580.65 against 13.580.82, nvml.h of CUDA 13.0 against 13.1.
"""


def load(root=""):
    """Return the pynvml module, which can then find the library. Raise ImportError."""
    import pynvml

    load_library(root)
    return pynvml


def load_library(root=""):
    """Load the library from the driver's folder. A later search by name finds the library that was loaded by path."""
    loads(LIBRARY) or any(map(loads, in_driver_container(LIBRARY, root)))


def in_driver_container(library, root=""):
    """Return the places where a driver in a container has a library, whether or not it exists."""
    return [root + os.path.join(DRIVER_CONTAINER, folder, library) for folder in FOLDERS]


def loads(library):
    try:
        return bool(ctypes.CDLL(library))
    except OSError:
        return False


def decoded(answer):
    """Decode NVML's text: pynvml gives bytes or not, by its version."""
    return answer.decode("utf-8", "backslashreplace") if isinstance(answer, bytes) else answer


def held_back_fields(library):
    """Return {cause: field} of the driver in use. No header is of a version between 580.65 and 580.82."""
    version = tuple(map(int, re.findall(r"[0-9]+", decoded(library.nvmlSystemGetDriverVersion()))[:2]))
    first = SLOWDOWNS_NOW if version >= (580, 82) else SLOWDOWNS_OF_575 if (575, 0) <= version <= (580, 65) else None
    fields = dict(HELD_BACK)
    if first is not None:
        fields.update((name, first + at) for at, name in enumerate(SLOWDOWNS))
    return fields


def explain(error):
    """Describe an NVML error."""
    return ERRORS.get(error.value) or decoded(str(error))
