"""A sustained load on all GPUs at once, with clocks, power, temperature and throttling meanwhile.

Metric tflops, TFLOP/s: bf16 products on the tensor cores out of registers (fp32 multiply-adds on GPUs before sm_80), as
fast as plain mma.sync instructions go: a figure to compare GPUs with one another, not the chip's peak (that is gemm).
The load runs for `seconds`; the first `settle` seconds do not count. A sample is the rate over about half a second,
timed by the GPU's events. All warps compute the same all the time, and their results are compared at the end: one that
differs is a fault of the chip. NVML is sampled every 0.2 s meanwhile: about["clock_mhz"], ["power_w"], ["utilisation"]
(medians), ["temperature_c"] (the highest), ["reasons"] (clock event reasons, each with the share of samples that showed
it).

Manually: dcgmi diag -r targeted_stress, or gpu-burn, along with nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE.
Options: gpus, seconds, settle.
"""

import collections
import functools
import statistics
import threading

from nodetune.onhost.nvml import EVENT_REASONS
from nodetune.measurements.cuda import driver_api, gpu_busy, gpu_kernels, gpus
from nodetune.measurements.host import report as reporting

SECONDS = 60.0
SCOPE = "gpus"
SHARES_CUDA = True
ORDER = 90
SUITES = {"full": {"options": {"seconds": 30}, "seconds": 90}}
TOLERANCE = {"": {"peers": 7, "baseline": 7, "drift": 2}}
SUSPECT = "{gpu}: its clocks, power or cooling"
SAMPLE_SECONDS = 0.2
SM_CLOCK = 1


def measure(options, report):
    seconds, settle = float(options.get("seconds", 8)), float(options.get("settle", 2))
    loads = gpus.prepared(gpus.opened(options, report), report, "preparing a load", Load)
    if not loads:
        return
    report.step("load on " + ", ".join(load.gpu.name for load in loads))
    watch = Watch([load.gpu for load in loads], settle)
    watch.start()
    gpu_busy.keep_busy([load.busy for load in loads], seconds)
    watch.stop()
    for load in loads:
        report.step("{}: comparing results".format(load.gpu.name))
        with gpus.apart(report, load.gpu.name):
            load.finish(settle, watch.seen(load.gpu), report)


class Load:
    """The same kernel on a GPU over and over. Raises MeasurementError."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.kind = "mma" if gpu.attribute(driver_api.MAJOR) >= 8 else "fma"
        self.function = gpu.module(gpu_kernels.TENSOR if self.kind == "mma" else gpu_kernels.COMMON)[self.kind]
        self.blocks = gpu.attribute(driver_api.MULTIPROCESSORS) * 4
        self.threads = self.blocks * gpu_kernels.THREADS
        self.memory = gpu.allocate(4 * self.threads)
        self.stream = gpu.stream()
        gpu.poison(self.memory, 4 * self.threads, self.stream)
        rounds = self._rounds()
        flops = float(gpu_kernels.FLOPS[self.kind]) * rounds * self.threads
        self.busy = gpu_busy.Busy(gpu, self.stream, lambda: self._launch(rounds), flops)

    def _rounds(self):
        """Return the number of rounds that take about PIECE_SECONDS."""
        rounds = 1000
        while True:
            spent = gpus.Repeats(self.gpu, self.stream, functools.partial(self._launch, rounds), 1).seconds()[0]
            if spent > gpu_busy.PIECE_SECONDS / 10:
                return max(1, int(rounds * gpu_busy.PIECE_SECONDS / spent))
            rounds *= 4

    def _launch(self, rounds):
        arguments = [driver_api.POINTER(self.memory), driver_api.U32(rounds)]
        self.gpu.launch(self.function, self.blocks, gpu_kernels.THREADS, arguments, self.stream)

    def finish(self, settle, seen, report):
        """Report the load. Raise MeasurementError if the GPU failed or computed wrong results."""
        samples = self.busy.rates(settle)
        odd = different(self.gpu.fetch(self.memory, 4 * self.threads))
        if odd:
            text = "{}: computed wrongly: {} of {} warps had a different result than the others"
            raise reporting.MeasurementError(text.format(self.gpu.name, odd, self.threads // 32))
        load = "bf16 mma" if self.kind == "mma" else "fp32 fma"
        report.result(self.gpu.name, samples, "TFLOP/s", metric="tflops", load=load, checked=True, **seen)


def different(data):
    """Count the warps whose results (32 words each) differ from those of most."""
    warps = collections.Counter(data[start : start + 128] for start in range(0, len(data), 128))
    return sum(warps.values()) - warps.most_common(1)[0][1]


class Watch(threading.Thread):
    """Samples NVML during the load, from `settle` seconds on."""

    def __init__(self, found, settle):
        threading.Thread.__init__(self, daemon=True)
        self._found, self._settle = found, settle
        self._over = threading.Event()
        self._samples = {gpu.name: [] for gpu in found}

    def run(self):
        self._over.wait(self._settle)
        while not self._over.wait(SAMPLE_SECONDS):
            for gpu in self._found:
                self._samples[gpu.name].append(sample(gpu.seen))

    def stop(self):
        self._over.set()
        self.join(5.0)

    def seen(self, gpu):
        return summary(self._samples[gpu.name], gpu.seen)


def sample(seen):
    """Read a GPU once; None for values that NVML does not report."""
    rates = seen.ask("nvmlDeviceGetUtilizationRates")
    return {
        "clock_mhz": seen.ask("nvmlDeviceGetClockInfo", SM_CLOCK),
        "power_w": _watts(seen.ask("nvmlDeviceGetPowerUsage")),
        "temperature_c": seen.ask("nvmlDeviceGetTemperature", 0),
        "utilisation": None if rates is None else rates.gpu,
        "reasons": seen.event_reasons(),
    }


def _watts(milliwatts):
    return None if milliwatts is None else milliwatts / 1e3


def summary(samples, seen):
    """Summarise the samples; return nothing without NVML."""
    about = {"samples_seen": len(samples)}
    for name in ("clock_mhz", "power_w", "temperature_c", "utilisation"):
        values = [each[name] for each in samples if each[name] is not None]
        if values:
            about[name] = max(values) if name == "temperature_c" else statistics.median_high(values)
    masks = [each["reasons"] for each in samples if each["reasons"] is not None]
    if masks:
        shares = {name: sum(1 for mask in masks if mask & bit) / len(masks) for bit, name in EVENT_REASONS}
        about["reasons"] = {name: round(share, 3) for name, share in shares.items() if share}
    limits = {
        "max_clock_mhz": seen.ask("nvmlDeviceGetMaxClockInfo", SM_CLOCK),
        "power_limit_w": _watts(seen.ask("nvmlDeviceGetEnforcedPowerLimit")),
    }
    about.update((name, value) for name, value in limits.items() if value is not None)
    return about
