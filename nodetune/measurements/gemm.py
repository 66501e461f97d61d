"""Matrix products as in training: bf16 in and out, fp32 sums, through cuBLASLt.

Metrics bf16 and bf16_sustained, TFLOP/s (2·n³ operations a product of n by n matrices). bf16 is what the chip can do before
its power limit holds it down: after a rest, `warm` products that do not count and `products` that do, timed by the GPU's
events, make one sample. bf16_sustained is what is left under the power limit: products without rest for `seconds`, of
which the first 0.5 s do not count. On GPUs that reach their limit the two are 10 to 20 % apart: compare like with like.
Both matrices hold random numbers from a bell curve of width one: zeros toggle fewer transistors, run cooler and show more
than any training gets. cuBLASLt is taken from the linker's folders, CUDA's, or an installed wheel. All GPUs run at once:
each has a power limit of its own. Elements of the result are compared with what the CPU computes for them.

Manually: in PyTorch, x @ y of two torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda").
Options: gpus, n, products, warm, repeats, rest (seconds), seconds (0: not sustained), library (path).
"""

import ctypes
import math
import os
import random
import struct
import time

from . import cublaslt
from . import gpu_busy
from . import gpu_kernels
from . import gpus
from . import report as reporting

SECONDS = 45.0
SCOPE = "gpus"
ORDER = 80
SUITES = {"quick": {}, "full": {}}
TOLERANCE = {"": {"peers": 7, "baseline": 7, "drift": 2}}
SUSPECT = "{gpu}: its clocks, power or cooling"
WORKSPACE = 32 << 20
MOST_QUEUED = 100


def measure(options, report):
    plan = Plan(options)
    found = gpus.opened(options, report)
    if not found:
        return
    report.step("loading cuBLASLt")
    library = cublaslt.Library(options.get("library"), found[0].driver.version)
    ready = gpus.prepared(found, report, "preparing products", lambda gpu: Product(gpu, library, plan))
    for metric, run in (("bf16", _rested), ("bf16_sustained", _sustained)):
        if ready and (metric == "bf16" or plan.seconds):
            report.step("products on " + ", ".join(product.gpu.name for product in ready))
            ready = [each for each, samples in run(plan, ready, report) if _tell(each, metric, samples, report)]


class Plan:
    def __init__(self, options):
        self.n = int(options.get("n", 8192))
        self.warm, self.products = int(options.get("warm", 3)), int(options.get("products", 10))
        self.repeats, self.rest = int(options.get("repeats", 6)), float(options.get("rest", 0.2))
        self.seconds = float(options.get("seconds", 2.0))
        self.flops = 2.0 * self.n**3


def _rested(plan, ready, report):
    """Return (product, TFLOP/s of each repeat) of all GPUs that completed."""
    taken = {product: [] for product in ready}
    for _ in range(plan.repeats):
        time.sleep(plan.rest)
        for product in list(taken):
            with gpus.losing(report, product.gpu.name, taken, product):
                product.start()
        for product in list(taken):
            with gpus.losing(report, product.gpu.name, taken, product):
                taken[product] += gpus.rates(plan.flops * plan.products, product.started.seconds(), 1e12)
    return list(taken.items())


def _sustained(plan, ready, report):
    """Return (product, TFLOP/s over half-seconds) of all GPUs that completed."""
    pieces = min(MOST_QUEUED, max(1, int(gpu_busy.PIECE_SECONDS * 5e14 / plan.flops)))
    taken = []
    all_busy = [gpu_busy.Busy(each.gpu, each.stream, each.times(pieces), plan.flops * pieces) for each in ready]
    gpu_busy.keep_busy(all_busy, plan.seconds)
    for product, busy in zip(ready, all_busy):
        with gpus.apart(report, product.gpu.name):
            taken.append((product, busy.rates(settle=gpu_busy.WINDOW_SECONDS)))
    return taken


def _tell(product, metric, samples, report):
    """Report a figure if its result is right. Return whether it is."""
    with gpus.apart(report, product.gpu.name, metric):
        product.check()
        about = {"n": product.plan.n, "data": "random", "checked": True, "cublaslt": product.library.version}
        report.result(product.gpu.name, samples, "TFLOP/s", metric=metric, **about)
        return True
    return False


class Product:
    """D = Aᵀ·B on a GPU: columns of A and of B lie in a row in memory. Raises MeasurementError."""

    def __init__(self, gpu, library, plan):
        self.gpu, self.library, self.plan, self.n = gpu, library, plan, plan.n
        self.size = 2 * self.n * self.n
        if gpus.fitting(gpu, 1 << 60, 1, share=0.9) < 3 * self.size + WORKSPACE:
            text = "{}: not enough free memory for {}³{}"
            raise reporting.MeasurementError(text.format(gpu.name, self.n, gpu.users()))
        self.a, self.b, self.d = [gpu.allocate(self.size) for _ in range(3)]
        self.workspace, self.stream = gpu.allocate(WORKSPACE), gpu.stream()
        kernels = gpu_kernels.Kernels(gpu)
        kernels.bell(self.a, self.size, 1, self.stream)
        kernels.bell(self.b, self.size, 1 << 28, self.stream)
        gpu.poison(self.d, self.size, self.stream)
        gpu.wait(self.stream)
        self._describe()

    def _describe(self):
        doing, library = "{}: preparing a product".format(self.gpu.name), self.library
        self.handle = library.make(doing, "cublasLtCreate")
        self.what = library.make(doing, "cublasLtMatmulDescCreate", cublaslt.COMPUTE_FP32, cublaslt.FP32)
        turned = ctypes.c_int(cublaslt.TRANSPOSED)
        library.call(
            doing, "cublasLtMatmulDescSetAttribute", self.what, cublaslt.TRANSPOSE_LEFT, ctypes.byref(turned), 4
        )
        self.layout = library.make(doing, "cublasLtMatrixLayoutCreate", cublaslt.BF16, self.n, self.n, self.n)
        preference = library.make(doing, "cublasLtMatmulPreferenceCreate")
        most = ctypes.c_size_t(WORKSPACE)
        library.call(
            doing, "cublasLtMatmulPreferenceSetAttribute", preference, cublaslt.MOST_WORKSPACE, ctypes.byref(most), 8
        )
        self.chosen, count = cublaslt.Heuristic(), ctypes.c_int()
        layouts = (self.layout,) * 4
        more = (preference, 1, ctypes.byref(self.chosen), ctypes.byref(count))
        library.call(doing, "cublasLtMatmulAlgoGetHeuristic", self.handle, self.what, *layouts + more)
        if not count.value:
            text = "{}: cuBLASLt has no bf16 product for this GPU ({})"
            raise reporting.MeasurementError(text.format(self.gpu.name, self.gpu.model))

    def multiply(self):
        one, zero, layout = ctypes.c_float(1), ctypes.c_float(0), self.layout
        doing = "{}: a product".format(self.gpu.name)
        factors = (ctypes.byref(one), self.a, layout, self.b, layout)
        results = (ctypes.byref(zero), self.d, layout, self.d, layout)
        more = (ctypes.byref(self.chosen), self.workspace, WORKSPACE, self.stream)
        self.library.call(doing, "cublasLtMatmul", self.handle, self.what, *factors + results + more)

    def times(self, count):
        """Return a function that queues `count` products."""

        def queue():
            self.gpu.use()  # cuBLASLt takes the context that is current
            for _ in range(count):
                self.multiply()

        return queue

    def start(self):
        """Queue one sample."""
        self.times(self.plan.warm)()
        self.started = gpus.Repeats(self.gpu, self.stream, self.times(self.plan.products), 1, warm=False)

    def check(self, places=12):
        """Compare some elements with the CPU's. Raise MeasurementError."""
        picks = random.Random(os.getpid())
        for _ in range(places):
            row, column = picks.randrange(self.n), picks.randrange(self.n)
            left, right = self._column(self.a, row), self._column(self.b, column)
            wanted = math.fsum(x * y for x, y in zip(left, right))
            found = floats(self.gpu.fetch(self.d + 2 * (column * self.n + row), 2))[0]
            if not close(found, wanted, self.n):
                text = "{}: {}: element ({}, {}) of the product is {:g}, and should be {:g}"
                raise reporting.MeasurementError(text.format(self.gpu.name, gpus.WRONG, row, column, found, wanted))

    def _column(self, matrix, number):
        return floats(self.gpu.fetch(matrix + 2 * number * self.n, 2 * self.n))


def floats(data):
    """Convert bytes of bf16 numbers to floats: a bf16 is the upper half of a float."""
    wide = bytearray(2 * len(data))
    wide[2::4], wide[3::4] = data[0::2], data[1::2]
    return struct.unpack("<{}f".format(len(data) // 2), bytes(wide))


def close(found, wanted, n):
    """Return whether a sum of n products of numbers around one is right, within bf16 and fp32 rounding."""
    return abs(found - wanted) <= 2.0**-8 * abs(wanted) + 1e-5 * n**0.5 + 1e-4
