"""The bounds of a GPU's work: its tensor cores by number format, its memory, and how near the usual products come.

Metrics of the roofs: fp32, tf32, fp16, bf16, fp8 and int8 (TFLOP/s of products of n by n matrices; for int8 these are
operations), hbm_read and l2_read (GB/s, read by all multiprocessors; the L2 cache over a quarter of its size), hbm_latency
and l2_latency (ns of one read that waits for the one before). A product whose operations per byte lie left of the
ridge, bf16 / hbm_read, is bound by memory, one to the right of it by the tensor cores.
Metrics of bf16 products under these roofs: prefill (1024 tokens by 4096 by 4096), decode_1 to decode_256 (that many tokens
at once; 1 is a product of a matrix and a vector), even and odd (4096³ and 4095³: all sides a multiple of 8, and not). And
fp32_large, 10000³ in fp32. Weights come from memory, never from the cache: each product takes other ones. Small products
are queued as a CUDA graph, so that the GPU does not wait for the CPU. `about` has each product's operations per byte.
decode_1 to decode_256 take the fastest of four ways: weights stored by output (as in PyTorch's Linear) or by input, and cuBLASLt's
first algorithm with a workspace or without. `about` says which it is, and `usual_share` what Linear's with a workspace reaches, in %.
All GPUs run at once, each on its own. Not measured: 2:4 sparse products (cuSPARSELt) and FP4 (needs block scales).

Manually: nvbandwidth, cublasMatmulBench; in PyTorch, torch.matmul in a torch.cuda.graph.
Options: gpus, n, side (4096), large (10000), repeats, most (products of a sample),
metrics (only these), library (path).
"""

import contextlib

from nodetune.measurements.cuda import cublaslt, driver_api, gpu_reads, gpus, products

SECONDS = 90.0
SCOPE = "gpus"
SHARES_CUDA = True
ORDER = 85
SUITES = {"full": {}}
TOLERANCE = {
    "": {"peers": 7, "baseline": 7, "drift": 2},
    "hbm_read": {"peers": 3, "baseline": 5, "drift": 1},
    "hbm_latency": {"peers": 10, "baseline": 10, "drift": 3},
    "l2_latency": {"peers": 10, "baseline": 10, "drift": 3},
}
SUSPECT = "{gpu}: its clocks, power, cooling or memory"

TOKENS = (1, 8, 32, 64, 128, 256)
READ, LATENCY_MEMORY, STEPS = 4 << 30, 1 << 30, 20000
CACHE_READS = 16 << 30
"""Bytes that one sample reads from the L2 cache."""

USUAL_CACHE = 32 << 20
TRIALS, IN_TRIAL = 3, 16
"""How often each way of a decode is tried, and products in a trial."""

SMALL, PIECE = 1e12, 2.5e12
"""Products of fewer operations than SMALL are queued in graphs of PIECE operations, or of `most` products."""


def measure(options, report):
    plan = Plan(options)
    found = gpus.opened(options, report)
    if not found:
        return
    for metric, make in READS:
        _run(plan, found, report, metric, make)
    report.step("loading cuBLASLt")
    library = cublaslt.Library(options.get("library"), found[0].driver.version)
    for metric, shape in plan.shapes().items():
        _run(
            plan,
            found,
            report,
            metric,
            lambda gpu, shape=shape, metric=metric: Multiplied(gpu, library, shape, plan, metric),
        )


class Plan:
    def __init__(self, options):
        self.n, self.repeats = int(options.get("n", 8192)), int(options.get("repeats", 5))
        self.side, self.large = int(options.get("side", 4096)), int(options.get("large", 10000))
        self.most = int(options.get("most", 256))
        self.metrics = options.get("metrics")
        self._fastest = {}

    def fastest(self, gpu, library, shape):
        """Return (way of a decode, share of its rate that the usual way reaches): the same way for all GPUs of a model."""
        found = gpu.model, shape.n
        if found not in self._fastest:
            taken = tried(gpu, library, shape)
            way = min(taken, key=taken.get)
            self._fastest[found] = way, taken[way] / taken[products.USUAL]
        return self._fastest[found]

    def shapes(self):
        """Return the products by metric."""
        side = self.side
        found = {form: products.Shape(form, self.n, self.n, self.n) for form in products.FORMATS}
        found["prefill"] = products.Shape("bf16", side, side // 4, side)
        found.update(("decode_{}".format(tokens), products.Shape("bf16", side, tokens, side)) for tokens in TOKENS)
        found.update(
            (name, products.Shape("bf16", *(sides,) * 3)) for name, sides in (("even", side), ("odd", side - 1))
        )
        found["fp32_large"] = products.Shape("fp32", self.large, self.large, self.large)
        return found


def _run(plan, found, report, metric, make):
    """Queue one kind of work on all GPUs, then report each. A GPU whose driver fails is left out from then on."""
    if plan.metrics and metric not in plan.metrics:
        return
    queued = []
    for gpu in list(found):
        report.step("{}: {}".format(gpu.name, metric))
        with _losing(report, gpu, found, metric):
            work = make(gpu)
            queued.append((work, gpus.Repeats(gpu, work.stream, work.queue, plan.repeats)))
    for work, repeats in queued:
        with _losing(report, work.gpu, found, metric):
            samples = [work.rate(each) for each in repeats.seconds()]
            try:
                work.check()
            finally:
                work.release()
            better = "lower" if work.unit == "ns" else "higher"
            report.result(work.gpu.name, samples, work.unit, better=better, metric=metric, checked=True, **work.about)


@contextlib.contextmanager
def _losing(report, gpu, found, metric):
    with gpus.apart(report, gpu.name, metric):
        try:
            yield
        except driver_api.CudaError:
            found.remove(gpu)
            raise


class Multiplied(products.Product):
    """Samples of products: of a few large ones, or of a graph of many small ones."""

    unit = "TFLOP/s"

    def __init__(self, gpu, library, shape, plan, metric):
        small, way, share = shape.flops < SMALL, products.USUAL, None
        if small:
            shape.weights = max(2, -(-8 * cache(gpu) // shape.weight_size))
        if metric.startswith("decode_"):
            way, share = plan.fastest(gpu, library, shape)
        self.count = max(2, min(plan.most, int(PIECE / shape.flops)))
        super().__init__(gpu, library, shape, way)
        self.queue = self.times(self.count)
        if small:
            self.queue()
            gpu.wait(self.stream)
            self.queue = gpu.graph(self.stream, self.queue)
        self.about = {"n": shape.n, "dtype": shape.form, "data": "random", "shape": shape.words}
        self.about.update(intensity=round(shape.flops / shape.moved, 2), cublaslt=library.version)
        if share:
            self.about.update(weights="by output" if way.by_output else "by input", workspace=way.workspace)
            self.about.update(usual_share=round(100 * share, 1))

    def rate(self, seconds):
        return self.shape.flops * self.count / seconds / 1e12


def tried(gpu, library, shape):
    """Return {way: seconds of a trial}."""
    taken = {}
    for by_output in (True, False):
        product = products.Product(gpu, library, shape, products.Way(by_output))
        for workspace in (products.WORKSPACE, 0):
            product.choose(workspace)
            product.times(1)()
            gpu.wait(product.stream)
            run = gpu.graph(product.stream, product.times(IN_TRIAL))
            taken[product.way] = min(gpus.Repeats(gpu, product.stream, run, TRIALS).seconds())
        product.release()
    return taken


class Streamed(gpu_reads.Stream):
    unit = "GB/s"

    def __init__(self, gpu, size, total):
        super().__init__(gpu, size, max(1, total // size))
        self.about = {"size": self.size, "counted": "read"}

    def rate(self, seconds):
        return self.size * self.rounds / seconds / 1e9


class Waited(gpu_reads.Chase):
    unit = "ns"

    def __init__(self, gpu, size):
        super().__init__(gpu, size // gpu_reads.LINE, STEPS)
        self.about = {"size": size, "steps": STEPS}

    def rate(self, seconds):
        return seconds / self.steps * 1e9


def cache(gpu):
    """Return the bytes of a GPU's L2 cache."""
    return gpu.attribute(driver_api.L2_SIZE) or USUAL_CACHE


def _power_of_two(most):
    return 1 << (most.bit_length() - 1)


READS = (
    ("hbm_read", lambda gpu: Streamed(gpu, gpus.fitting(gpu, READ, 1), 4 * READ)),
    ("l2_read", lambda gpu: Streamed(gpu, cache(gpu) // 4, CACHE_READS)),
    ("hbm_latency", lambda gpu: Waited(gpu, _power_of_two(gpus.fitting(gpu, LATENCY_MEMORY, 1)))),
    ("l2_latency", lambda gpu: Waited(gpu, _power_of_two(cache(gpu) // 8))),
)
