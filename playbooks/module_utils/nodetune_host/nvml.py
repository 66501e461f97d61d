"""NVML for resources, in a child process with a deadline; each call is announced before it is made."""

from .onhost import nvml, worker
from .problem import ChangeError

CALL_SECONDS = 30
ENDING_SECONDS = 2
GPU_SECONDS = 10
"""The first call initialises a GPU without clients, which takes seconds."""


class RefusedError(ChangeError):
    """NVML's own error: `code` is its number."""

    def __init__(self, text, code):
        ChangeError.__init__(self, text)
        self.code = code


class Gpu:
    """One open GPU: `gpu("nvmlDeviceGetEccMode", …)` calls NVML for it. `index` is its place in NVML's order."""

    def __init__(self, session, index, handle):
        self.session, self.index, self.handle = session, index, handle
        self.uuid = nvml.decoded(self("nvmlDeviceGetUUID"))

    def __call__(self, function, *arguments):
        return self.about(function, self.handle, *arguments)

    def about(self, function, *arguments):
        """Make a call for a part of this GPU with its own handle."""
        return self.session.call(f"GPU{self.index}: ", function, *arguments)

    def supported(self, function, *arguments):
        """Return the answer, or None if the GPU or the driver does not support the call."""
        try:
            return self(function, *arguments)
        except RefusedError as refused:
            if refused.code in nvml.ABSENT:
                return None
            raise


class Session:
    """NVML in the child, through `library` (pynvml). `step(text)` receives each call before it is made."""

    def __init__(self, library, step):
        self.library, self.step = library, step
        nvml.load_library()
        self.call("", "nvmlInit")

    def call(self, where, function, *arguments):
        self.step(where + function)
        try:
            return getattr(self.library, function)(*arguments)
        except self.library.NVMLError as error:
            raise RefusedError(f"{where}{function}: {nvml.explain(error)}", error.value) from None

    def gpu(self, index):
        return Gpu(self, index, self.call(f"GPU{index}: ", "nvmlDeviceGetHandleByIndex", index))

    def same_gpu(self, index, uuid):
        """Return the GPU with that UUID, whatever its current index."""
        return Gpu(self, index, self.call(f"GPU{index} ({uuid}): ", "nvmlDeviceGetHandleByUUID", uuid.encode()))


def ask(work, gpus, seconds=CALL_SECONDS):
    """Return the result of `work(session)` (JSON data), from a child with a deadline by number of GPUs.

    Raise ChangeError, also for a driver that hangs; it names the call.
    """
    library = binding()  # here: it is large, touches no driver, and every child would have to read it again
    return in_child(lambda step: work(Session(library, step)), seconds + GPU_SECONDS * gpus)


def in_child(function, seconds):
    """Return the result of `function(step)` (JSON data), from a child. Raise ChangeError."""
    try:
        content, problem = worker.ask(
            lambda step: _outcome(function, step), seconds, "the NVIDIA driver", ENDING_SECONDS
        )
    except worker.NoAnswerError as error:
        raise ChangeError(str(error)) from None
    if problem:
        raise ChangeError(problem)
    return content


def _outcome(function, step):
    try:
        return function(step), None
    except ChangeError as problem:
        return None, str(problem)


def binding():
    """Return the pynvml that nodetune sent, or the host's own. Raise ChangeError."""
    try:
        from ansible.module_utils import pynvml
    except ImportError:
        try:
            import pynvml
        except ImportError:
            raise ChangeError("this host has no pynvml, and none was sent") from None
    return pynvml
