"""NCCL by ctypes: uses the host's libnccl.so.2; nothing is installed or compiled.

Names, argument types and numbers are those of nccl.h. Addresses, streams and communicators are plain integers. A call
that NCCL rejects is a MeasurementError with the name of the call, NCCL's text, and its last warning.
"""

import ctypes
import glob
import os

from nodetune.measurements.cuda import cuda_libraries
from nodetune.measurements.host import report as reporting

LIBRARY = "libnccl.so.2"
INT, SIZE, HANDLE, TEXT = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
ID_BYTES = 128
FLOAT32, FLOAT64, BFLOAT16, SUM = 7, 8, 9, 0
IN_PROGRESS = 7
WITH_CONFIG = "ncclCommInitRankConfig"
"""Came with 2.14."""

WHEELS = ("nvidia/nccl/lib", "torch/lib")
FOLDERS = ("/usr/local/nccl*/lib*", "/opt/*/lib", "/opt/*/build/lib")
"""Folders of conda and of builds from source, in addition to those of CUDA's libraries."""


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_ubyte * ID_BYTES)]


PROTOTYPES = {
    "ncclGetVersion": (HANDLE,),
    "ncclGetUniqueId": (HANDLE,),
    "ncclCommInitRank": (HANDLE, INT, UniqueId, INT),
    "ncclCommGetAsyncError": (HANDLE, HANDLE),
    "ncclCommAbort": (HANDLE,),
    "ncclCommDestroy": (HANDLE,),
    "ncclAllReduce": (HANDLE, HANDLE, SIZE, INT, INT, HANDLE, HANDLE),
    "ncclReduceScatter": (HANDLE, HANDLE, SIZE, INT, INT, HANDLE, HANDLE),
    "ncclAllGather": (HANDLE, HANDLE, SIZE, INT, HANDLE, HANDLE),
    "ncclSend": (HANDLE, SIZE, INT, INT, HANDLE, HANDLE),
    "ncclRecv": (HANDLE, SIZE, INT, INT, HANDLE, HANDLE),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
}
ALLTOALL = "ncclAlltoAll"
"""Came with 2.28. nccl-tests and PyTorch call it where the library has it, and else send and receive in a group."""

NEWER = {ALLTOALL: (HANDLE, HANDLE, SIZE, INT, HANDLE, HANDLE)}
"""Prototypes of what not every supported library has."""


class Library:
    """The loaded library: `version` as 2.28.9, `path` of the file. Raises MeasurementError if it is too old."""

    def __init__(self, handle, path):
        self.path = path
        self._library = handle
        self.functions = {name: self._function(name, types) for name, types in PROTOTYPES.items()}
        newer = {name: types for name, types in NEWER.items() if hasattr(handle, name)}
        self.functions.update({name: self._function(name, types) for name, types in newer.items()})
        number = INT()
        self.call("ncclGetVersion", ctypes.byref(number))
        self.version = version_text(number.value)

    def _function(self, name, types):
        function = getattr(self._library, name, None)
        if function is None:
            raise reporting.MeasurementError("{} has no {}: NCCL 2.7 or newer is needed".format(self.path, name))
        function.argtypes, function.restype = types, INT
        return function

    def call(self, name, *arguments):
        """Call NCCL. Raise MeasurementError."""
        self._check(name, self.functions[name](*arguments))

    def prepared(self, name, *arguments):
        """Return a call with converted arguments, for repeated use: the interpreter's overhead is measured too."""
        function = self.functions[name]
        values = [kind(value) for kind, value in zip(function.argtypes, arguments)]

        def call():
            code = function(*values)
            if code:
                self._check(name, code)

        return call

    def _check(self, name, code):
        if code not in (0, IN_PROGRESS):
            raise reporting.MeasurementError("{}: {}".format(name, self.explain(code)))

    def explain(self, code):
        """Return `unhandled cuda error …; last complaint`."""
        text = self._text("ncclGetErrorString", code) or "NCCL error {}".format(code)
        last = " ".join(self._text("ncclGetLastError", None).split())
        return text.partition(" (run with")[0] + ("; it says: " + last[:300] if last else "")

    def _text(self, name, argument):
        function = getattr(self._library, name, None)  # ncclGetLastError came with 2.13
        if function is None:
            return ""
        function.argtypes, function.restype = (INT if name == "ncclGetErrorString" else HANDLE,), TEXT
        return (function(argument) or b"").decode("utf-8", "backslashreplace")

    def unique_id(self):
        """Return the bytes that all ranks need to find the first one, which must be this process."""
        made = UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made.internal)

    def join(self, identity, ranks, rank, config=None):
        """Return a communicator once all ranks have joined, with an ncclConfig_t if given. Raise MeasurementError."""
        made, known = HANDLE(), UniqueId((ctypes.c_ubyte * ID_BYTES)(*identity))
        if config is None:
            self.call("ncclCommInitRank", ctypes.byref(made), ranks, known, rank)
        else:
            types = PROTOTYPES["ncclCommInitRank"] + (HANDLE,)
            self.functions[WITH_CONFIG] = self._function(WITH_CONFIG, types)
            self.call(WITH_CONFIG, ctypes.byref(made), ranks, known, rank, ctypes.byref(config))
        return made.value

    def trouble(self, communicator):
        """Return an asynchronous error (a lost peer, a network error), or None."""
        code = INT()
        self.call("ncclCommGetAsyncError", communicator, ctypes.byref(code))
        return None if code.value in (0, IN_PROGRESS) else self.explain(code.value)


def version_text(number):
    """Format `2.28.9` from 22809, `2.7.8` from 2708 (the numbering changed with 2.9)."""
    if number < 10000:
        return "{}.{}.{}".format(number // 1000, number // 100 % 10, number % 100)
    return "{}.{}.{}".format(number // 10000, number // 100 % 100, number % 100)


def load(path=None):
    """Load the file or folder `path`, else the first library found that loads. Raise SkipError or MeasurementError."""
    problems = []
    for each in [_file(path)] if path else candidates():
        try:
            handle = cuda_libraries.load(each)
        except OSError as problem:
            problems.append(str(problem))
            continue
        return Library(handle, _mapped() or each)
    if path or len(problems) > 1 or cuda_libraries.distrust(LIBRARY):
        raise reporting.MeasurementError("NCCL cannot be loaded: {}".format("; ".join(problems)))
    advice = (
        "looked for in the linker's and CUDA's folders and in wheels of Pythons under /usr, /opt and the home folder, not in "
        "containers: install libnccl2 (Debian, Ubuntu), libnccl (RPM) or the wheel nvidia-nccl-cu12, or name the file of a "
        "container or environment with --nccl PATH"
    )
    raise reporting.SkipError("no {} on this host: {}".format(LIBRARY, advice))


def _file(path):
    return os.path.join(path, LIBRARY) if os.path.isdir(path) else path


def candidates():
    """Return the library's name for the linker, then files of that name on this host."""
    return cuda_libraries.found((LIBRARY,), WHEELS) + [
        path for folder in FOLDERS for path in sorted(glob.glob(os.path.join(folder, LIBRARY)))
    ]


def _mapped():
    """Return the file that was actually loaded, from this process's memory map."""
    try:
        with open("/proc/self/maps") as file:
            lines = [line.split(None, 5)[-1].strip() for line in file if "libnccl.so" in line]
    except OSError:
        return None
    return lines[0] if lines else None
