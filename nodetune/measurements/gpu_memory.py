"""Device memory bandwidth: a copy within the GPU's own memory.

Metric device_copy, GB/s, counting what is read and what is written (twice the bytes copied; programs that count once
show half). A sample is `copies` copies of `size` bytes in a row by the driver's own copy, timed by the GPU's events; one
before them does not count. The size is far above the caches. The source holds a pattern that differs in every word; the
copy is compared with it, word by word, on the GPU. All GPUs run at once because each uses only itself.

Manually: nvbandwidth -t device_local_copy (which counts bytes once).
Options: gpus, size (bytes), copies, repeats.
"""

from nodetune.measurements.cuda import gpu_kernels, gpus

SECONDS = 20.0
SCOPE = "gpus"
SHARES_CUDA = True
ORDER = 50
SUITES = {"quick": {}, "full": {}}
TOLERANCE = {"": {"peers": 3, "baseline": 5, "drift": 1}}
SUSPECT = "{gpu}'s memory"
SEED = 17


def measure(options, report):
    found = gpus.opened(options, report)
    for copy in gpus.prepared(found, report, "copying within its memory", lambda gpu: Copy(gpu, options)):
        report.step("{}: copying within its memory".format(copy.gpu.name))
        with gpus.apart(report, copy.gpu.name):
            copy.finish(report)


class Copy:
    """A GPU's copies, queued when this is made. Raises MeasurementError."""

    def __init__(self, gpu, options):
        self.gpu, self.copies = gpu, int(options.get("copies", 4))
        self.kernels = gpu_kernels.Kernels(gpu)
        self.size = gpus.fitting(gpu, int(options.get("size", 4 << 30)), 2)
        self.source, self.target = gpu.allocate(self.size), gpu.allocate(self.size)
        self.stream = gpu.stream()
        self.kernels.fill(self.source, self.size, SEED, self.stream)
        gpu.poison(self.target, self.size, self.stream)
        self.repeats = gpus.Repeats(gpu, self.stream, self.work, int(options.get("repeats", 10)))

    def work(self):
        for _ in range(self.copies):
            self.gpu.within(self.target, self.source, self.size, self.stream)

    def finish(self, report):
        """Wait, compare, report. Raise MeasurementError if data is wrong."""
        seconds = self.repeats.seconds()
        self.kernels.confirm(self.target, self.size, SEED, self.stream, "a copy within its memory")
        samples = gpus.rates(2 * self.size * self.copies, seconds)
        about = {"size": self.size, "counted": "read and written", "checked": True}
        report.result(self.gpu.name, samples, "GB/s", metric="device_copy", **about)
