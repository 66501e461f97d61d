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

import time

from nodetune.measurements.cuda import cublaslt, gpu_busy, gpus, products

SECONDS = 45.0
SCOPE = "gpus"
SHARES_CUDA = True
ORDER = 80
SUITES = {"quick": {}, "full": {}}
TOLERANCE = {"": {"peers": 7, "baseline": 7, "drift": 2}}
SUSPECT = "{gpu}: its clocks, power or cooling"
MAX_QUEUED = 100


def measure(options, report):
    plan = Plan(options)
    found = gpus.opened(options, report)
    if not found:
        return
    report.step("loading cuBLASLt")
    library = cublaslt.Library(options.get("library"), found[0].driver.version)
    ready = gpus.prepared(found, report, "preparing products", lambda gpu: products.Product(gpu, library, plan.shape))
    for metric, run in (("bf16", _rested), ("bf16_sustained", _sustained)):
        if ready and (metric == "bf16" or plan.seconds):
            report.step("products on " + ", ".join(product.gpu.name for product in ready))
            ready = [each for each, samples in run(plan, ready, report) if _tell(each, metric, samples, report)]


class Plan:
    def __init__(self, options):
        self.warm, self.products = int(options.get("warm", 3)), int(options.get("products", 10))
        self.repeats, self.rest = int(options.get("repeats", 6)), float(options.get("rest", 0.2))
        self.seconds = float(options.get("seconds", 2.0))
        self.shape = products.square(options)
        self.flops = self.shape.flops


def _rested(plan, ready, report):
    """Return (product, TFLOP/s of each repeat) of all GPUs that completed."""
    taken = {product: [] for product in ready}
    for _ in range(plan.repeats):
        time.sleep(plan.rest)
        for product in list(taken):
            with gpus.losing(report, product.gpu.name, taken, product):
                product.start(plan.warm, plan.products)
        for product in list(taken):
            with gpus.losing(report, product.gpu.name, taken, product):
                taken[product] += gpus.rates(plan.flops * plan.products, product.started.seconds(), 1e12)
    return list(taken.items())


def _sustained(plan, ready, report):
    """Return (product, TFLOP/s over half-seconds) of all GPUs that completed."""
    pieces = min(MAX_QUEUED, max(1, int(gpu_busy.PIECE_SECONDS * 5e14 / plan.flops)))
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
        about = {"n": product.shape.n, "data": "random", "checked": True, "cublaslt": product.library.version}
        report.result(product.gpu.name, samples, "TFLOP/s", metric=metric, **about)
        return True
    return False
