"""Energy of work: joules for 1e12 operations of matrix products, and for 1e12 bytes read, by NVML's energy counter.

Two loads, one after the other (option `loads`). `products`, bound by computing as training is: metrics energy (J/TFLOP), power
(W) and bf16 (TFLOP/s). `memory`, bound by memory as the decoding of inference is: memory_energy (J/TB), memory_power (W) and
memory (GB/s), all multiprocessors reading. Each over the same stretches of `seconds` without rest, after
`settle` seconds that do not count. The counter is the whole board's, memory included, and moves in steps of up to a
tenth of a second: stretches are of two seconds or more. `set` holds a power limit (milliwatts) or locked clocks
([lowest, highest] MHz) meanwhile, only with `allow_gpu_settings` and on GPUs without other users; the previous settings
are always restored (host/temporary_settings.py). The product is gemm's: random numbers, checked afterwards, as are the sums of what
was read.

Manually: nvidia-smi --query-gpu=power.draw --format=csv -l 1 while PyTorch multiplies.
Options: gpus, loads, n, size (bytes read), repeats, seconds, settle, library (path), set, allow_gpu_settings.
"""

import time

from nodetune.measurements.cuda import cublaslt, gpu_busy, gpu_reads, gpus, products
from nodetune.measurements.host import gpu_settings, temporary_settings
from nodetune.measurements.host import report as reporting
from . import gemm

SECONDS = 120.0
SCOPE = "gpus"
ORDER = 85
SUITES = {}
TOLERANCE = {"": {"peers": 10, "baseline": 7, "drift": 3}}
SUSPECT = "{gpu}: its power or cooling"
COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
READ, AT_ONCE = 4 << 30, 100e9
"""Bytes that are read again and again, and those of a piece of work: about a twentieth of a second."""


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
    loads = options.get("loads") or list(LOADS)
    ready = {
        name: gpus.prepared(found, report, "preparing " + name, LOADS[name](plan, options, found)) for name in loads
    }
    seen = {work.gpu.name: work.gpu.seen for works in ready.values() for work in works}
    taken = {}
    with temporary_settings.held(gpu_settings.of_gpus(wanted, list(seen.values()))):
        for name in loads:
            report.step("energy of {} on {}".format(name, ", ".join(work.gpu.name for work in ready[name])))
            taken[name] = _stretches(
                plan, ready[name], float(options.get("settle", 1.0)), int(options.get("repeats", 3))
            )
    for name in loads:
        for work in ready[name]:
            _tell(work, taken[name][work], wanted, report)


class Products(products.Product):
    """Products without end. `amount`: the operations of what `queue` queues."""

    metrics, unit, scale = ("energy", "power", "bf16"), ("J/TFLOP", "TFLOP/s"), 1

    def __init__(self, gpu, library, plan):
        super().__init__(gpu, library, plan.shape)
        pieces = min(gemm.MAX_QUEUED, max(1, int(gpu_busy.PIECE_SECONDS * 5e14 / plan.flops)))
        self.queue, self.amount, self.about = self.times(pieces), plan.flops * pieces, {"n": plan.shape.n}


class Reads(gpu_reads.Stream):
    """Reading without end. `amount`: the bytes of what `queue` queues."""

    metrics, unit, scale = ("memory_energy", "memory_power", "memory"), ("J/TB", "GB/s"), 1000

    def __init__(self, gpu, wanted):
        size = gpus.fitting(gpu, wanted, 1)
        super().__init__(gpu, size, max(1, int(AT_ONCE / size)))
        self.amount, self.about = self.size * self.rounds, {"size": self.size, "counted": "read"}


def _products(plan, options, found):
    library = cublaslt.Library(options.get("library"), found[0].driver.version)
    return lambda gpu: Products(gpu, library, plan)


def _reads(_plan, options, _found):
    return lambda gpu: Reads(gpu, int(options.get("size", READ)))


LOADS = {"products": _products, "memory": _reads}


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
    """Return {work: [(1e12 a second, watts)]}."""
    taken = {work: [] for work in ready}
    _one_stretch(ready, max(settle, 2 * gpu_busy.WINDOW_SECONDS))
    for _ in range(repeats):
        for work, sample in _one_stretch(ready, plan.seconds).items():
            taken[work].append(sample)
    return taken


def _one_stretch(ready, seconds):
    busy = {each: gpu_busy.Busy(each.gpu, each.stream, each.queue, each.amount) for each in ready}
    before = {work: (work.gpu.seen.ask(COUNTER), time.monotonic()) for work in ready}
    gpu_busy.keep_busy(list(busy.values()), seconds)
    after = {work: (work.gpu.seen.ask(COUNTER), time.monotonic()) for work in ready}
    found = {}
    for work, load in busy.items():
        rates = load.rates(settle=0.0)
        joules = (after[work][0] - before[work][0]) / 1e3
        found[work] = (sum(rates) / len(rates), joules / (after[work][1] - before[work][1]))
    return found


def _tell(work, samples, wanted, report):
    """Report the figures of a GPU whose result is right."""
    gpu, (energy, power, rate_of), (joules_for, a_second) = work.gpu, work.metrics, work.unit
    with gpus.apart(report, gpu.name, energy):
        work.check()
        about = dict(
            work.about,
            checked=True,
            set=wanted,
            power_limit=gpu.seen.ask("nvmlDeviceGetEnforcedPowerLimit"),
            temperature=gpu.seen.ask("nvmlDeviceGetTemperature", 0),
        )
        report.result(gpu.name, [watts / rate for rate, watts in samples], joules_for, "lower", metric=energy, **about)
        report.result(gpu.name, [watts for _, watts in samples], "W", "lower", metric=power, **about)
        report.result(gpu.name, [rate * work.scale for rate, _ in samples], a_second, metric=rate_of, **about)
