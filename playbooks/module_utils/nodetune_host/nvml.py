"""NVML as lenses use it: in a child process with a deadline, each call named before it is made."""

import ctypes

from . import child
from .problem import Problem

CALL_SECONDS = 30
GPU_SECONDS = 10
"""A GPU that no client holds open is initialized by the first call: that takes seconds."""

NOT_SUPPORTED = (3, 13, 26)
"""Not supported by the GPU, function unknown to an older driver, given up by a newer one."""

LIBRARY = "libnvidia-ml.so.1"
DRIVER_CONTAINER = "/run/nvidia/driver/usr/lib"
"""Where NVIDIA's GPU Operator mounts the driver: its libraries are not in the system's folders."""


class Refused(Problem):
    """NVML's own error: `code` is its number."""

    def __init__(self, text, code):
        Problem.__init__(self, text)
        self.code = code


class Gpu:
    """One open GPU: `gpu("nvmlDeviceGetEccMode", …)` calls NVML for it. `index` is its place in NVML's order."""

    def __init__(self, session, index, handle):
        self.session, self.index, self.handle = session, index, handle
        self.uuid = text(self("nvmlDeviceGetUUID"))

    def __call__(self, function, *arguments):
        return self.about(function, self.handle, *arguments)

    def about(self, function, *arguments):
        """A call about something on this GPU that has a handle of its own."""
        return self.session.call(f"GPU{self.index}: ", function, *arguments)

    def supported(self, function, *arguments):
        """The answer, or None where the GPU or the driver does not have such a thing."""
        try:
            return self(function, *arguments)
        except Refused as refused:
            if refused.code in NOT_SUPPORTED:
                return None
            raise


class Session:
    """NVML in the child, through `library` (pynvml). `step(text)` is told of each call before it is made."""

    def __init__(self, library, step):
        self.library, self.step = library, step
        _load_from_driver_container()
        self.call("", "nvmlInit")

    def call(self, where, function, *arguments):
        self.step(where + function)
        try:
            return getattr(self.library, function)(*arguments)
        except self.library.NVMLError as error:
            raise Refused(f"{where}{function}: {self.meaning(error)}", error.value) from None

    def meaning(self, error):
        return text(str(error))

    def gpu(self, index):
        return Gpu(self, index, self.call(f"GPU{index}: ", "nvmlDeviceGetHandleByIndex", index))

    def same_gpu(self, index, uuid):
        """The GPU with that UUID, wherever it is counted now."""
        return Gpu(self, index, self.call(f"GPU{index} ({uuid}): ", "nvmlDeviceGetHandleByUUID", uuid.encode()))


def ask(work, gpus, seconds=CALL_SECONDS):
    """What `work(session)` returns (JSON data), worked out in a child within `seconds` and some for each of the GPUs.

    Raises Problem, also for a driver that hangs; it names the call.
    """
    library = binding()  # here: it is large, touches no driver, and every child would have to read it again
    return child.ask(lambda step: work(Session(library, step)), seconds + GPU_SECONDS * gpus, "the NVIDIA driver")


def text(answer):
    return answer.decode("utf-8", "backslashreplace") if isinstance(answer, bytes) else answer


def binding():
    """pynvml as it came along, or the host's own. Raises Problem."""
    try:
        from ansible.module_utils import pynvml
    except ImportError:
        try:
            import pynvml
        except ImportError:
            raise Problem("this host has no pynvml, and none came along") from None
    return pynvml


def _load_from_driver_container():
    """What is loaded by its path is what a later search for its name finds."""
    folders = ("64", "/x86_64-linux-gnu", "/aarch64-linux-gnu")
    _loads(LIBRARY) or any(_loads(f"{DRIVER_CONTAINER}{folder}/{LIBRARY}") for folder in folders)


def _loads(path):
    try:
        return bool(ctypes.CDLL(path))
    except OSError:
        return False
