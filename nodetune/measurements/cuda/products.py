"""Matrix products on a GPU through cuBLASLt: the number formats, the shapes, and a check of the result.

A product is D = Aᵀ·B: columns of A and of B lie in a row in memory, as in PyTorch's Linear. A holds the weights (k by m),
B the inputs (k by n), D the outputs (m by n). With another `Way`, it is D = A·B with A m by k.
"""

import ctypes
import functools
import math
import os
import random
import struct
import typing

from nodetune.measurements.host import report as reporting
from . import cublaslt, gpu_kernels, gpus

WORKSPACE = 32 << 20


class Format(typing.NamedTuple):
    """A number format of the inputs, with cuBLASLt's numbers for inputs, output, sums and factors."""

    inputs: int
    output: int
    compute: int
    scale: int
    keep: int
    """These bits of a random word are an input, with the bits of `add`: numbers of either sign, below 2."""
    add: int
    rounding: float
    """How far off a sum of k products may be, as a multiple of the root of k."""


FORMATS = {
    "fp32": Format(cublaslt.FP32, cublaslt.FP32, cublaslt.IN_FP32, cublaslt.FP32, 0x807FFFFF, 0x3F000000, 1e-5),
    "tf32": Format(cublaslt.FP32, cublaslt.FP32, cublaslt.IN_TF32, cublaslt.FP32, 0x807FE000, 0x3F000000, 1e-4),
    "fp16": Format(cublaslt.FP16, cublaslt.FP16, cublaslt.IN_FP32, cublaslt.FP32, 0x83FF83FF, 0x38003800, 1e-5),
    "bf16": Format(cublaslt.BF16, cublaslt.BF16, cublaslt.IN_FP32, cublaslt.FP32, 0x807F807F, 0x3F003F00, 1e-5),
    "fp8": Format(cublaslt.FP8, cublaslt.BF16, cublaslt.IN_FP32, cublaslt.FP32, 0xBFBFBFBF, 0, 2e-2),
    "int8": Format(cublaslt.INT8, cublaslt.INT32, cublaslt.IN_INT32, cublaslt.INT32, 0xFFFFFFFF, 0, 0),
}
"""TF32 drops the last 13 bits of a float: they are 0 here. FP8 is E4M3, with the sums of Hopper's tensor cores, which
keep some 14 bits."""

SIZES = {
    cublaslt.FP32: 4,
    cublaslt.FP16: 2,
    cublaslt.INT8: 1,
    cublaslt.INT32: 4,
    cublaslt.BF16: 2,
    cublaslt.FP8: 1,
}
"""Bytes of a number."""


class Shape:
    """The sides of a product: `m` by `k` weights with `n` inputs. `bell`: bf16 numbers from a bell curve of width one.

    With several `weights` each product takes the next ones, so that none of them is left in the GPU's cache.
    """

    def __init__(self, form, m, n, k, bell=False, weights=1):
        self.form, self.m, self.n, self.k, self.bell, self.weights = form, m, n, k, bell, weights
        self.format = FORMATS[form]
        self.input_size, self.output_size = SIZES[self.format.inputs], SIZES[self.format.output]

    @property
    def flops(self):
        """Operations of a product: a multiplication and an addition for each element of A and each input."""
        return 2.0 * self.m * self.n * self.k

    @property
    def moved(self):
        """The bytes that a product has to move at least: each matrix once."""
        return self.input_size * self.k * (self.m + self.n) + self.output_size * self.m * self.n

    @property
    def memory(self):
        """The bytes of all matrices."""
        return self.moved + (self.weights - 1) * self.weight_size

    @property
    def weight_size(self):
        """The bytes of one set of weights, each of which starts at a multiple of 256."""
        return -(-self.input_size * self.k * self.m // 256) * 256

    @property
    def words(self):
        """The sides, as in `1024x4096x4096`: inputs, outputs, and what is summed over."""
        return "{}x{}x{}".format(self.n, self.m, self.k)


def square(options):
    """Return the bf16 product of square matrices from a bell curve, with the rows that the options name."""
    n = int(options.get("n", 8192))
    return Shape("bf16", n, n, n, bell=True)


class Way(typing.NamedTuple):
    """How a product is computed: by the first algorithm that cuBLASLt proposes for these."""

    by_output: bool = True
    """Whether the weights of an output lie in a row in memory, as in PyTorch's Linear; if not, those of an input."""
    workspace: int = WORKSPACE
    """The bytes that the algorithm may use. With none, it cannot split the sums among multiprocessors."""


USUAL = Way()


class Product:
    """A product on a GPU, ready to be queued. Raises MeasurementError."""

    def __init__(self, gpu, library, shape, way=USUAL):
        self.gpu, self.library, self.shape, self.way = gpu, library, shape, way
        if gpus.fitting(gpu, 1 << 60, 1, share=0.9) < shape.memory + WORKSPACE:
            raise reporting.MeasurementError(
                "{}: not enough free memory for {}{}".format(gpu.name, shape.words, gpu.users())
            )
        sizes = (shape.weight_size * shape.weights, shape.input_size * shape.k * shape.n)
        self.d_size = shape.output_size * shape.m * shape.n
        self.a, self.b, self.d, self.workspace = [gpu.allocate(size) for size in sizes + (self.d_size, WORKSPACE)]
        self.stream, self.turn = gpu.stream(), 0
        kernels = gpu_kernels.Kernels(gpu)
        for address, size, seed in ((self.a, sizes[0], 1), (self.b, sizes[1], 1 << 28)):
            if shape.bell:
                kernels.bell(address, size, seed, self.stream)
            else:
                kernels.bits(address, size, seed, shape.format.keep, shape.format.add, self.stream)
        gpu.poison(self.d, self.d_size, self.stream)
        gpu.wait(self.stream)
        self._describe()

    def _describe(self):
        doing, library, shape = "{}: preparing a product".format(self.gpu.name), self.library, self.shape
        self.handle = library.make(doing, "cublasLtCreate")
        self.what = library.make(doing, "cublasLtMatmulDescCreate", shape.format.compute, shape.format.scale)
        if self.way.by_output:
            turned = ctypes.c_int(cublaslt.TRANSPOSED)
            library.call(
                doing, "cublasLtMatmulDescSetAttribute", self.what, cublaslt.TRANSPOSE_LEFT, ctypes.byref(turned), 4
            )
        if shape.form == "fp8":
            fast = ctypes.c_int8(1)
            library.call(doing, "cublasLtMatmulDescSetAttribute", self.what, cublaslt.FAST_SUMS, ctypes.byref(fast), 1)
        inputs, output = shape.format.inputs, shape.format.output
        left = (shape.k, shape.m) if self.way.by_output else (shape.m, shape.k)
        sides = ((inputs,) + left, (inputs, shape.k, shape.n), (output, shape.m, shape.n))
        self.layouts = [library.make(doing, "cublasLtMatrixLayoutCreate", *side + side[1:2]) for side in sides]
        self.choose(self.way.workspace)

    def choose(self, workspace):
        """Take the first algorithm that cuBLASLt proposes for so large a workspace."""
        doing, library, shape = "{}: choosing an algorithm".format(self.gpu.name), self.library, self.shape
        self.way = self.way._replace(workspace=workspace)
        preference = library.make(doing, "cublasLtMatmulPreferenceCreate")
        most = ctypes.c_size_t(workspace)
        library.call(
            doing, "cublasLtMatmulPreferenceSetAttribute", preference, cublaslt.MAX_WORKSPACE, ctypes.byref(most), 8
        )
        self.chosen, count = cublaslt.Heuristic(), ctypes.c_int()
        layouts = tuple(self.layouts) + (self.layouts[2],)
        more = (preference, 1, ctypes.byref(self.chosen), ctypes.byref(count))
        asked = (doing, "cublasLtMatmulAlgoGetHeuristic", self.handle, self.what) + layouts + more
        if library.call(*asked, allowed=cublaslt.NOT_SUPPORTED) or not count.value:
            text = "cuBLASLt {} has no {} product for this GPU ({})"
            raise reporting.SkipError(text.format(library.version, shape.form, self.gpu.model))

    def multiply(self):
        """Queue a product with the next weights."""
        kind = ctypes.c_int if self.shape.format.scale == cublaslt.INT32 else ctypes.c_float
        one, zero, (a, b, d) = kind(1), kind(0), self.layouts
        doing = "{}: a product".format(self.gpu.name)
        weights = self.a + self.turn * self.shape.weight_size
        self.turn = (self.turn + 1) % self.shape.weights
        factors = (ctypes.byref(one), weights, a, self.b, b)
        results = (ctypes.byref(zero), self.d, d, self.d, d)
        more = (ctypes.byref(self.chosen), self.workspace, WORKSPACE, self.stream)
        self.library.call(doing, "cublasLtMatmul", self.handle, self.what, *factors + results + more)

    def times(self, count):
        """Return a function that queues `count` products."""

        def queue():
            self.gpu.use()  # cuBLASLt takes the context that is current
            for _ in range(count):
                self.multiply()

        return queue

    def start(self, warm, count):
        """Queue one sample of `count` products, after `warm` that do not count."""
        self.times(warm)()
        self.started = gpus.Repeats(self.gpu, self.stream, self.times(count), 1, warm=False)

    def release(self):
        """Give the memory back."""
        for address in (self.a, self.b, self.d, self.workspace):
            self.gpu.release(address)

    def check(self, places=12):
        """Compare some elements of the last result with the CPU's. Raise MeasurementError."""
        picks, shape = random.Random(os.getpid()), self.shape
        weights_of = self._weights(self.a + (self.turn - 1) % shape.weights * shape.weight_size)
        for _ in range(places):
            row, column = picks.randrange(shape.m), picks.randrange(shape.n)
            left, right = weights_of(row), self._column(self.b, column)
            wanted = math.fsum(x * y for x, y in zip(left, right))
            place = self.d + shape.output_size * (column * shape.m + row)
            found = numbers(self.gpu.fetch(place, shape.output_size), shape.format.output)[0]
            if not close(found, wanted, shape.k, shape.format):
                text = "{}: {}: element ({}, {}) of {} is {:g}, and should be {:g}"
                raise reporting.MeasurementError(
                    text.format(self.gpu.name, gpus.WRONG, row, column, shape.words, found, wanted)
                )

    def _weights(self, matrix):
        """Return a function that gives the weights of an output."""
        if self.way.by_output:
            return functools.partial(self._column, matrix)
        size, shape = self.shape.input_size, self.shape
        data = self.gpu.fetch(matrix, size * shape.k * shape.m)

        def of_output(row):
            starts = range(size * row, len(data), size * shape.m)
            return numbers(b"".join(data[start : start + size] for start in starts), shape.format.inputs)

        return of_output

    def _column(self, matrix, number):
        size = self.shape.input_size * self.shape.k
        return numbers(self.gpu.fetch(matrix + number * size, size), self.shape.format.inputs)


def numbers(data, kind):
    """Convert bytes of a number format to Python's numbers."""
    if kind == cublaslt.BF16:  # the upper half of a float
        wide = bytearray(2 * len(data))
        wide[2::4], wide[3::4] = data[0::2], data[1::2]
        data = bytes(wide)
    if kind == cublaslt.FP8:
        return [E4M3[byte] for byte in data]
    letter = {cublaslt.FP16: "e", cublaslt.INT8: "b", cublaslt.INT32: "i"}.get(kind, "f")
    return struct.unpack("<{}{}".format(len(data) // struct.calcsize(letter), letter), data)


def _e4m3(byte):
    """Return the value of an FP8 number: a sign, 4 bits of exponent less 7, 3 bits behind the point."""
    exponent, rest = byte >> 3 & 15, byte & 7
    size = math.ldexp(8 + rest, exponent - 10) if exponent else math.ldexp(rest, -9)
    return -size if byte & 0x80 else size


E4M3 = [_e4m3(byte) for byte in range(256)]


def close(found, wanted, k, form):
    """Return whether a sum of k products is right, within the rounding of the sums and of the result."""
    output = {cublaslt.BF16: 2.0**-8, cublaslt.FP16: 2.0**-11, cublaslt.INT32: 0}.get(form.output, 2.0**-23)
    return abs(found - wanted) <= output * abs(wanted) + form.rounding * (k**0.5 + 10)
