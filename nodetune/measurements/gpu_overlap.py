"""Copies as programs make them: from ordinary memory, and while the GPU computes.

Metrics pageable_h2d and pageable_d2h, GB/s: one thread copies ordinary memory, which the driver moves through a pinned buffer
of its own; pinned memory (gpu_copy) is several times as fast. Metrics copy_overlapped and bf16_overlapped, in % of each alone: pinned
copies to the GPU while it multiplies matrices, and the products meanwhile. A copy engine does the copying, so both stay near
100 %; a program whose copies wait for its kernels loses that by its own order of things. Memory and thread are on the NUMA
node nearest to the GPU; GPU after GPU. What was copied is compared byte by byte, the products as those of gemm.

Manually: in PyTorch, time tensor.to("cuda") of a tensor that is not pinned, and of a pinned one while x @ y runs.
Options: gpus, size (bytes), repeats, n, library (path), seconds (of work at once).
"""

import ctypes
import math
import statistics
import time

from nodetune.measurements.cuda import cublaslt, gpus, products
from nodetune.measurements.host import numa
from nodetune.measurements.host import report as reporting
from . import gpu_copy

SECONDS = 60.0
SCOPE = "gpus"
SHARES_CUDA = True
ORDER = 45
SUITES = {"full": {}}
TOLERANCE = {
    "": {"peers": 15, "baseline": 20, "drift": 8},
    "copy_overlapped": {"peers": 5, "baseline": 5, "drift": 2},
    "bf16_overlapped": {"peers": 5, "baseline": 5, "drift": 2},
}
SUSPECT = "the host memory and CPUs near {gpu}"
MAX_QUEUED = 60


def measure(options, report):
    layout = numa.nodes()
    for gpu in gpus.opened(options, report):
        with gpus.apart(report, gpu.name):
            node = gpu.node if gpu.node in layout else min(layout)
            host = gpu_copy.Host(gpu, node, layout[node], int(options.get("size", 128 << 20)))
            with gpu.memory(host.size) as (target,):
                _pageable(gpu, host, target, int(options.get("repeats", 5)), report)
                _overlapped(gpu, host, target, options, report)
            host.free()


def _pageable(gpu, host, target, repeats, report):
    report.step("{}: copies of ordinary memory".format(gpu.name))
    numa.allocate_on(host.node)
    try:
        plain = ctypes.create_string_buffer(host.size)
        ctypes.memmove(plain, host.out, host.size)
    finally:
        numa.allocate_on(None)
    address = ctypes.addressof(plain)
    ways = {
        "pageable_h2d": lambda: gpu.call("copying", "cuMemcpyHtoD_v2", target, address, host.size),
        "pageable_d2h": lambda: gpu.call("copying", "cuMemcpyDtoH_v2", address, target, host.size),
    }
    for metric, copy in ways.items():
        taken = [_seconds(gpu, copy) for _ in range(repeats + 1)][1:]
        if metric == "pageable_h2d":
            ctypes.memset(address, 0, host.size)
        report.result(gpu.name, gpus.rates(host.size, taken), "GB/s", metric=metric, size=host.size, checked=True)
    ctypes.memmove(host.back, address, host.size)
    _confirm(gpu, host)


def _seconds(gpu, copy):
    start = time.perf_counter()
    copy()
    gpu.wait()
    return time.perf_counter() - start


def _confirm(gpu, host):
    if not host.same():
        text = "{}: {}: what was sent to the GPU and fetched again is not the same"
        raise reporting.MeasurementError(text.format(gpu.name, gpus.WRONG))


def _overlapped(gpu, host, target, options, report):
    report.step("{}: copies while it computes".format(gpu.name))
    seconds = float(options.get("seconds", 0.3))
    library = cublaslt.Library(options.get("library"), gpu.driver.version)
    product, stream = products.Product(gpu, library, products.square(options)), gpu.stream()

    def copies():
        gpu.to_gpu(target, host.out, host.size, stream)

    works = {"copy_overlapped": (stream, copies), "bf16_overlapped": (product.stream, product.times(1))}
    alone = {metric: _taken(gpu, works, {metric: 5})[metric] for metric in works}
    counts = {metric: max(1, min(MAX_QUEUED, math.ceil(seconds / taken))) for metric, taken in alone.items()}
    both = _taken(gpu, works, counts)
    host.forget()
    gpu.to_host(host.back, target, host.size, stream)
    gpu.wait(stream)
    _confirm(gpu, host)
    product.check()
    for metric in works:
        about = {"n": product.shape.n, "size": host.size, "alone_ms": round(1e3 * alone[metric], 3), "checked": True}
        report.result(gpu.name, [100.0 * alone[metric] / both[metric]], "%", metric=metric, **about)


def _taken(gpu, works, counts):
    """Return {metric: median seconds} of the repeats of each, all queued at once."""
    running = {metric: gpus.Repeats(gpu, *works[metric], repeats=count) for metric, count in counts.items()}
    return {metric: statistics.median_high(repeats.seconds()) for metric, repeats in running.items()}
