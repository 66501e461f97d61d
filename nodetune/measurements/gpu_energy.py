"""Energy of matrix products as in training: joules for 1e12 operations, by NVML's energy counter.

Metrics energy (J/TFLOP), power (W) and bf16 (TFLOP/s), over the same stretches of `seconds` without rest, after
`settle` seconds that do not count. The counter is the whole board's, memory included, and moves in steps of up to a
tenth of a second: stretches are of two seconds or more. `set` holds a power limit (milliwatts) or locked clocks
([lowest, highest] MHz) meanwhile, only with `allow_gpu_settings` and on GPUs without other users; the previous settings
are always restored (host/temporary_settings.py). The product is gemm's: random numbers, checked afterwards.

Manually: nvidia-smi --query-gpu=power.draw --format=csv -l 1 while PyTorch multiplies.
Options: gpus, n, repeats, seconds, settle, library (path), set, allow_gpu_settings.
"""

import time

from nodetune.measurements.cuda import cublaslt, gpu_busy, gpus, products
from nodetune.measurements.host import gpu_settings, temporary_settings
from nodetune.measurements.host import report as reporting
from . import gemm

SECONDS = 90.0
SCOPE = "gpus"
ORDER = 85
SUITES = {}
TOLERANCE = {"": {"peers": 10, "baseline": 7, "drift": 3}}
SUSPECT = "{gpu}: its power or cooling"
COUNTER = "nvmlDeviceGetTotalEnergyConsumption"


def measure(options, report):
    wanted = options.get("set") or {}
    if wanted and options.get("allow_gpu_settings") is not True:
        raise reporting.MeasurementError("settings of GPUs are changed only with --allow-gpu-settings")
    if wanted:
        _refuse_users(report)
    plan = gemm.Plan(dict(options, seconds=options.get("seconds", 3.0)))
    found = [gpu for gpu in gpus.opened(options, report) if _counts(gpu, report)]
    if not found:
        return
    library = cublaslt.Library(options.get("library"), found[0].driver.version)
    ready = gpus.prepared(found, report, "preparing products", lambda gpu: products.Product(gpu, library, plan.shape))
    report.step("energy of products on " + ", ".join(product.gpu.name for product in ready))
    settings = gpu_settings.of_gpus(wanted, [product.gpu.seen for product in ready])
    with temporary_settings.held(settings):
        taken = _stretches(plan, ready, float(options.get("settle", 1.0)), int(options.get("repeats", 3)))
    for product in ready:
        _tell(product, taken[product], wanted, report)


def _refuse_users(report):
    """Raise MeasurementError if a process computes on a GPU of this host: it would be slowed down."""
    users = [words for gpu in gpus.known(report).values() for words in gpu.computing().values()]
    if users:
        raise reporting.MeasurementError("GPUs are in use, so nothing is changed: " + ", ".join(sorted(set(users))))


def _counts(gpu, report):
    if gpu.seen.ask(COUNTER) is not None:
        return True
    report.skip("the GPU or its driver does not count energy (Volta and later do)", gpu.name)
    return False


def _stretches(plan, ready, settle, repeats):
    """Return {product: [(TFLOP/s, watts)]}."""
    taken = {product: [] for product in ready}
    _one_stretch(plan, ready, max(settle, 2 * gpu_busy.WINDOW_SECONDS))
    for _ in range(repeats):
        for product, sample in _one_stretch(plan, ready, plan.seconds).items():
            taken[product].append(sample)
    return taken


def _one_stretch(plan, ready, seconds):
    pieces = min(gemm.MAX_QUEUED, max(1, int(gpu_busy.PIECE_SECONDS * 5e14 / plan.flops)))
    busy = {each: gpu_busy.Busy(each.gpu, each.stream, each.times(pieces), plan.flops * pieces) for each in ready}
    before = {product: (product.gpu.seen.ask(COUNTER), time.monotonic()) for product in ready}
    gpu_busy.keep_busy(list(busy.values()), seconds)
    after = {product: (product.gpu.seen.ask(COUNTER), time.monotonic()) for product in ready}
    found = {}
    for product, load in busy.items():
        rates = load.rates(settle=0.0)
        joules = (after[product][0] - before[product][0]) / 1e3
        found[product] = (sum(rates) / len(rates), joules / (after[product][1] - before[product][1]))
    return found


def _tell(product, samples, wanted, report):
    """Report the figures of a GPU whose product is right."""
    gpu = product.gpu
    with gpus.apart(report, gpu.name, "energy"):
        product.check()
        about = {
            "n": product.shape.n,
            "checked": True,
            "set": wanted,
            "power_limit": gpu.seen.ask("nvmlDeviceGetEnforcedPowerLimit"),
            "temperature": gpu.seen.ask("nvmlDeviceGetTemperature", 0),
        }
        report.result(gpu.name, [watts / rate for rate, watts in samples], "J/TFLOP", "lower", metric="energy", **about)
        report.result(gpu.name, [watts for _, watts in samples], "W", "lower", metric="power", **about)
        report.result(gpu.name, [rate for rate, _ in samples], "TFLOP/s", metric="bf16", **about)
