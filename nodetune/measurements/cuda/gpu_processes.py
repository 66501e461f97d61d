"""Processes with a CUDA of their own, as jobs have: each works alone, then all at once. For mig and gpu_sharing.

The parent opens no GPU: CUDA does not survive a fork.
"""

import json
import os
import time
import typing

from nodetune.measurements.host import process_team
from nodetune.measurements.host import report as reporting
from . import cublaslt, driver_api, driver_gpu, gpu_busy, gpu_kernels, gpus, products

SETTLE = 0.25
"""Seconds of each load that do not count: the processes do not begin at the same instant."""

LAST = 1.5
"""Seconds before the deadline at which we end it ourselves and can name the process."""

SEED, MAX_QUEUED = 29, 100


class Part(typing.NamedTuple):
    """One process: its name in messages, and the GPU or instance that it sees."""

    name: str
    uuid: str

    def open(self, path):
        """Return the GPU. Raise SkipError or MeasurementError."""
        os.environ["CUDA_VISIBLE_DEVICES"] = self.uuid
        gpu = driver_gpu.devices(driver_api.Driver(path))[0]
        gpu.name = self.name
        gpu.open()
        return gpu


class Load:
    """Work for one GPU. `once` queues some of it, `amount` is how much in 1e-12 of `unit`."""

    def __init__(self, gpu, stream, once, amount, check):
        self.gpu, self.stream, self.amount, self.check = gpu, stream, amount, check
        taken = gpus.Repeats(gpu, stream, once, 1).seconds()[0]
        self._once, self._times = once, max(1, min(MAX_QUEUED, int(gpu_busy.PIECE_SECONDS / max(taken, 1e-6))))

    def rates(self, seconds):
        """Return the rates of a load of that many seconds. Raise MeasurementError."""
        busy = gpu_busy.Busy(self.gpu, self.stream, self._piece, self.amount * self._times)
        gpu_busy.keep_busy([busy], seconds)
        return busy.rates(settle=SETTLE)

    def _piece(self):
        for _ in range(self._times):
            self._once()


def copy(gpu, options):
    """Return a load of copies within the memory, in GB/s read and written."""
    kernels = gpu_kernels.Kernels(gpu)
    size = gpus.fitting(gpu, int(options.get("size", 1 << 30)), 2)
    source, target, stream = gpu.allocate(size), gpu.allocate(size), gpu.stream()
    kernels.fill(source, size, SEED, stream)
    gpu.poison(target, size, stream)

    def check():
        kernels.confirm(target, size, SEED, stream, "a copy within its memory")

    return Load(gpu, stream, lambda: gpu.within(target, source, size, stream), 2e3 * size, check)


def multiply(gpu, options, in_graph=0):
    """Return a load of bf16 products in TFLOP/s; `in_graph`: as many are queued at once, which takes the CPU no time."""
    library = cublaslt.Library(options.get("library"), gpu.driver.version)
    product = products.Product(gpu, library, products.square(options))
    product.times(1)()  # cuBLASLt loads its kernels now: not while a graph is recorded
    gpu.wait()
    once = gpu.graph(product.stream, product.times(in_graph)) if in_graph else product.times(1)
    return Load(gpu, product.stream, once, product.shape.flops * max(1, in_graph), product.check)


def measured(parts, loads, options, report):
    """Return {(metric, all at once): rates of each part} for the loads {metric: function of a GPU and the options}.

    Raise SkipError or MeasurementError if one of them fails.
    """
    runs = [(part.name, lambda out, given, part=part: _live(part, loads, options, out, given)) for part in parts]
    seconds, found = float(options.get("seconds", 1.4)), {}
    report.step("starting {} processes".format(len(parts)))
    with process_team.Team(runs) as team:
        heard = team.events(time.monotonic() + report.left() - LAST)
        _answers(heard, "ready", range(len(parts)))
        for metric in loads:
            order = json.dumps([metric, seconds])
            found[metric, False] = []
            for number, part in enumerate(parts):
                report.step("{}: {} alone".format(part.name, metric))
                found[metric, False] += _ordered(team, heard, [number], order)
            report.step("{} on all {} at once".format(metric, len(parts)))
            found[metric, True] = _ordered(team, heard, range(len(parts)), order)
        for member in team.members:
            member.send("")
        for _ in heard:  # a wrong result is raised here
            pass
    return found


def _ordered(team, heard, numbers, order):
    for number in numbers:
        team.members[number].send(order)
    found = _answers(heard, "rates", numbers)
    return [found[number] for number in numbers]


def _answers(heard, wanted, numbers):
    """Return {number: content} of the messages of that kind, once all of these processes have sent one."""
    found = {}
    for number, kind, content in heard:
        if kind == wanted:
            found[number] = content
            if len(found) == len(numbers):
                return found
    raise reporting.MeasurementError("a process ended without an answer")


def _live(part, loads, options, out, given):
    out.step("opening the GPU")
    gpu = part.open(options.get("libcuda"))
    made = {}
    for metric, make in loads.items():
        out.step("preparing " + metric)
        made[metric] = make(gpu, options)
    out.send("ready", None)
    for line in iter(given.readline, b"\n"):
        metric, seconds = json.loads(line.decode("ascii"))
        out.step(metric)
        out.send("rates", made[metric].rates(seconds))
    for load in made.values():
        load.check()


def chosen(options, report):
    """Return the GPUs (gpus.Seen) that the options name; all of them without any. Raise MeasurementError."""
    seen = gpus.known(report)
    if not seen:
        raise reporting.SkipError("no GPU of NVIDIA here, or no driver that shows it")
    there = {each.name: each for _, each in sorted(seen.items())}
    names = list(there) if options.get("gpus") is None else ["GPU{}".format(each) for each in options["gpus"]]
    missing = [name for name in names if name not in there]
    if missing:
        raise reporting.MeasurementError("{} not found: there are {}".format(", ".join(missing), ", ".join(there)))
    return [there[name] for name in names]
