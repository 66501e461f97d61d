"""cuBLASLt by ctypes: CUDA's library for matrix products, wherever it is on the host.

Names, argument types and numbers are those of cublasLt.h.
"""

import ctypes

from nodetune.measurements.host import report as reporting
from . import cuda_libraries

NAMES = ("libcublasLt.so.13", "libcublasLt.so.12")
WHEELS = ("nvidia/cu13/lib", "nvidia/cublas/lib")

FP32, FP16, INT8, INT32, BF16, FP8 = 0, 2, 3, 10, 14, 28
"""Numbers of library_types.h: CUDA_R_32F, CUDA_R_16F, CUDA_R_8I, CUDA_R_32I, CUDA_R_16BF, CUDA_R_8F_E4M3."""

IN_FP32, IN_INT32, IN_TF32 = 68, 72, 77
"""Numbers of cublas_api.h: CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32I, CUBLAS_COMPUTE_32F_FAST_TF32."""

NOT_SUPPORTED = 15
"""CUBLAS_STATUS_NOT_SUPPORTED."""

TRANSPOSE_LEFT, FAST_SUMS, TRANSPOSED, MAX_WORKSPACE = 3, 25, 1, 1
"""Numbers of cublasLt.h: CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_FAST_ACCUM, CUBLAS_OP_T,
CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES."""

INT, U64, HANDLE, OUT, SIZE = ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
POINTER = ctypes.c_uint64
MATRIX = (POINTER, HANDLE)

PROTOTYPES = {
    "cublasLtGetVersion": (SIZE,),
    "cublasLtGetStatusName": (ctypes.c_char_p, INT),
    "cublasLtCreate": (INT, OUT),
    "cublasLtMatmulDescCreate": (INT, OUT, INT, INT),
    "cublasLtMatmulDescSetAttribute": (INT, HANDLE, INT, OUT, SIZE),
    "cublasLtMatrixLayoutCreate": (INT, OUT, INT, U64, U64, ctypes.c_int64),
    "cublasLtMatmulPreferenceCreate": (INT, OUT),
    "cublasLtMatmulPreferenceSetAttribute": (INT, HANDLE, INT, OUT, SIZE),
    "cublasLtMatmulAlgoGetHeuristic": (INT,) + (HANDLE,) * 7 + (INT, OUT, OUT),
    "cublasLtMatmul": (INT, HANDLE, HANDLE, OUT) + 2 * MATRIX + (OUT,) + 2 * MATRIX + (OUT, POINTER, SIZE, HANDLE),
}
"""Result and argument types of each function."""


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: the algorithm is opaque."""

    _fields_ = [
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("wavesCount", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


class Library:
    """cuBLASLt, loaded. Raises SkipError if it is missing, MeasurementError if the requested one does not load."""

    def __init__(self, path, driver_version):
        self._library, self.path = _load(path, driver_version)
        self._functions = {name: self._function(name, *types) for name, types in PROTOTYPES.items()}
        number = self._functions["cublasLtGetVersion"]()
        self.version = "{}.{}.{}".format(number // 10000, number // 100 % 100, number % 100)

    def _function(self, name, answer, *types):
        function = getattr(self._library, name, None)
        if function is None:
            raise reporting.MeasurementError("{} has no {}: cuBLASLt 11.4 or newer is needed".format(self.path, name))
        function.restype, function.argtypes = answer, types
        return function

    def call(self, doing, name, *arguments, **allowed):
        """Call cuBLASLt and return its status: 0, or the one that is `allowed`. Raise MeasurementError."""
        status = self._functions[name](*arguments)
        if status not in (0, allowed.get("allowed")):
            text = self._functions["cublasLtGetStatusName"](status).decode("ascii")
            raise reporting.MeasurementError("{}: {} gave {}".format(doing, name, text))
        return status

    def make(self, doing, name, *arguments):
        made = HANDLE()
        self.call(doing, name, ctypes.byref(made), *arguments)
        return made


def _load(path, driver_version):
    """Load the library. Skip versions newer than the driver: CUDA 13 needs a driver of CUDA 13."""
    names = [name for name in NAMES if int(name.rpartition(".")[2]) <= driver_version // 1000]
    problems = []
    for each in [path] if path else cuda_libraries.found(names, WHEELS):
        try:
            return cuda_libraries.load(each), each
        except OSError as problem:
            problems.append(str(problem))
    if path:
        raise reporting.MeasurementError("{} cannot be loaded: {}".format(path, problems[0]))
    if any(cuda_libraries.distrust(each) for each in cuda_libraries.found(names, WHEELS)):
        raise reporting.MeasurementError("cuBLASLt cannot be loaded: {}".format("; ".join(problems)))
    text = "no cuBLASLt ({}) on this host: it comes with CUDA (libcublas-13-0, libcublas-12-…) or PyTorch, or give its path"
    raise reporting.SkipError(text.format(" or ".join(names)))
