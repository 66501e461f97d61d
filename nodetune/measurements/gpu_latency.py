"""CPU time for the smallest piece of GPU work, in µs.

Metrics: launch (an empty kernel started and waited for), launch_pipelined (the same started over and over, waited for
once: the time for each), launch_graph (as many in one CUDA graph, started at once: the time for each, which no CPU takes part
in), copy_h2d and copy_d2h (8 bytes of pinned memory copied and waited for). A sample is the median of
`calls` single times, for launch_pipelined and launch_graph the mean. GPU after GPU, the calling thread on the CPUs of the GPU's NUMA node.
The calls are made from Python through ctypes: `call_overhead` is what an almost empty call (cuDriverGetVersion)
costs this way. Figures compare with peers and with earlier runs of this program, not with those of a C program.

Manually: a C loop of cuLaunchKernel and cuStreamSynchronize; which shows 1 to 2.5 µs less.
Options: gpus, calls, repeats.
"""

import ctypes
import statistics
import time

from nodetune.measurements.cuda import gpu_kernels, gpus
from nodetune.measurements.host import numa

SECONDS = 20.0
SCOPE = "gpus"
SHARES_CUDA = True
ORDER = 38  # before all others of its process: after copies, launches from a graph took 0.72 µs instead of 0.54
SUITES = {"quick": {}, "full": {}}
TOLERANCE = {"": {"peers": 40, "baseline": 40, "drift": 20}}
SUSPECT = "the CPU that serves {gpu}: its clock, idle states, interrupts"
BYTES = 8


def measure(options, report):
    layout = numa.nodes()
    for gpu in gpus.opened(options, report):
        report.step("{}: small launches and copies".format(gpu.name))
        with gpus.apart(report, gpu.name):
            numa.run_on(layout.get(gpu.node) or [cpu for cpus in layout.values() for cpu in cpus])
            _one(Calls(gpu, int(options.get("calls", 200))), int(options.get("repeats", 10)), report)


class Calls:
    """The calls to time, with everything prepared so that only the call is timed."""

    def __init__(self, gpu, calls):
        self.gpu, self.calls = gpu, calls
        self.function = gpu.module(gpu_kernels.COMMON)["empty"]
        self.stream = gpu.stream()
        self.host, self.memory = gpu.pinned(4096), gpu.allocate(4096)
        self._raw = gpu.driver.functions
        self._version = ctypes.byref(ctypes.c_int())

    def launch(self):
        self._start()
        self._wait()

    def copy_h2d(self):
        self._copy("cuMemcpyHtoDAsync_v2", self.memory, self.host)

    def copy_d2h(self):
        self._copy("cuMemcpyDtoHAsync_v2", self.host, self.memory)

    def nothing(self):
        self._raw["cuDriverGetVersion"](self._version)

    def _copy(self, name, to, source):
        self._raw[name](to, source, BYTES, self.stream)
        self._wait()

    def _start(self):
        self._raw["cuLaunchKernel"](self.function, 1, 1, 1, 1, 1, 1, 0, self.stream, None, None)

    def _wait(self):
        self._raw["cuStreamSynchronize"](self.stream)

    def single(self, call):
        """Return the median time of single calls, in µs."""
        times = []
        for _ in range(self.calls):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return statistics.median_high(times) * 1e6

    def in_a_row(self):
        """Return the mean time of a launch when nothing waits for the result, in µs."""
        return self._mean(self._start_all)

    def graph(self):
        """Return a function that gives the same for launches from a graph, in which the CPU has no part."""
        start_all = self.gpu.graph(self.stream, self._start_all)
        return lambda: self._mean(start_all)

    def _start_all(self):
        for _ in range(self.calls):
            self._start()

    def _mean(self, start_all):
        start = time.perf_counter()
        start_all()
        self._wait()
        return (time.perf_counter() - start) / self.calls * 1e6


def _one(calls, repeats, report):
    calls.gpu.use()
    overhead = round(calls.single(calls.nothing), 3)
    for metric in ("launch", "copy_h2d", "copy_d2h"):
        call = getattr(calls, metric)
        calls.single(call)
        samples = [calls.single(call) for _ in range(repeats)]
        _tell(calls, metric, samples, "median of {} calls".format(calls.calls), overhead, report)
    for metric, run in (("launch_pipelined", calls.in_a_row), ("launch_graph", calls.graph())):
        run()
        samples = [run() for _ in range(repeats)]
        _tell(calls, metric, samples, "mean of {} calls".format(calls.calls), overhead, report)


def _tell(calls, metric, samples, sample, overhead, report):
    calls.gpu.wait()  # an error of what was started comes up here
    about = {"sample": sample, "call_overhead": overhead}
    report.result(calls.gpu.name, samples, "µs", better="lower", metric=metric, **about)
