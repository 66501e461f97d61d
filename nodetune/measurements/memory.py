"""Memory bandwidth of each NUMA node from its own CPUs, and from each node to another.

What: libc's memcpy between two buffers a thread, bytes read plus bytes written, in GB/s. memcpy of large buffers writes
past the caches; where it does not, the memory does half as much again (lines are read before they are written).
How: one thread a core, pinned, its buffers touched first on the node under test (checked, page by page at three
places) in huge pages where the kernel gives them; together many times the size of the last cache, and at most a quarter
of the node's free memory. All threads copy at once for SECONDS_A_SAMPLE; the sum of their rates is a sample.
Statistic: the median of the repeats. metric `local`: all cores and one; `remote`: CPUs of one node, memory of another
(the full suite: every pair of nodes, both ways; otherwise each node and the next); `far_share`: `remote` in % of what the
memory gives its own node.
Manually: likwid-bench -t copy_mem -w M0:4GB, or STREAM's Copy with one pinned thread a core.
"""

import ctypes
import glob
import mmap
import re
import statistics
import threading
import time

from nodetune.measurements.host import numa
from nodetune.measurements.host import report as reporting

SECONDS = 30.0
SCOPE = "host"
ORDER = 10
SUITES = {"quick": {}, "full": {"options": {"remote": "all"}, "seconds": 240}}
TOLERANCE = {"": {"peers": 8, "baseline": 8, "drift": 3}}
SUSPECT = "{subject}: its memory channels and what is plugged into them"
SECONDS_A_SAMPLE = 0.15
MADV_HUGEPAGE = 14
PAGE = 1 << 21
LARGEST = 64 << 20
SMALLEST = 4 << 20
CACHES = 2
"""The total size of the buffers is at least this multiple of the last-level cache."""


def measure(options, report):
    """Measure. Options: nodes (numbers), repeats, threads (at most, per node), remote ("ring", "all" or "none")."""
    layout = numa.nodes()
    nodes = [node for node in options.get("nodes") or sorted(layout) if node in layout]
    repeats = int(options.get("repeats", 5))
    near = {}
    for node in nodes:
        cpus = _cpus(layout[node], options)
        near[node] = _one(report, "local", node, node, cpus, repeats)
        if len(cpus) > 1:
            _one(report, "local_one_thread", node, node, cpus[:1], repeats)
    for here, there in far_pairs(nodes, options.get("remote", "ring")):
        far = _one(report, "remote", here, there, _cpus(layout[here], options), repeats)
        if far and near.get(there):
            report.result(pair(here, there), [100.0 * far / near[there]], "%", metric="far_share", local=False)


def far_pairs(nodes, which):
    """Return (CPUs of, memory of): every pair, or each node and the next one."""
    if which == "all":
        return [(one, other) for one in nodes for other in nodes if one != other]
    after = nodes[1:] + nodes[:1]
    return [pair for pair in zip(nodes, after) if pair[0] != pair[1]] if which == "ring" else []


def _cpus(cpus, options):
    """Return one CPU per core: two of one core share everything that moves data."""
    first, _ = numa.cores(cpus)
    return first[: int(options["threads"])] if options.get("threads") else first


def pair(here, there):
    """Return the subject: CPUs of a node with its own memory, or with that of another."""
    return "node{}".format(here) if here == there else "node{}→node{}".format(here, there)


def _one(report, metric, node, memory, cpus, repeats):
    """Report a figure and return its median; None if it failed."""
    subject = pair(node, memory)
    report.step("{} with {} threads".format(subject, len(cpus)))
    try:
        size = buffer_size(len(cpus), numa.free_bytes(memory), last_cache(cpus))
        crew = Crew(cpus, memory, size)
        samples = [crew.sample(SECONDS_A_SAMPLE) for _ in range(repeats + 1)][1:]
        crew.finish()
    except (reporting.MeasurementError, OSError) as problem:
        report.failed(getattr(problem, "strerror", None) or str(problem), subject, metric)
        return None
    report.result(
        subject,
        samples,
        "GB/s",
        metric=metric,
        threads=len(cpus),
        size=size,
        counted="read + written",
        local=node == memory,
        distance=numa.distance(node, memory),
        checked=True,
    )
    return statistics.median_high(samples)


def buffer_size(threads, free, cache):
    """Return the bytes of one of a thread's two buffers. Raise MeasurementError if free memory is too small."""
    wanted = max(LARGEST, -(-CACHES * cache // (2 * threads)))
    size = min(wanted, free // 4 // (2 * threads)) // PAGE * PAGE
    if size < SMALLEST or 2 * threads * size < cache:
        raise reporting.MeasurementError(
            "only {} MiB of the node's memory are free: too little to measure with".format(free >> 20)
        )
    return size


def last_cache(cpus):
    """Return the bytes of all last-level caches of these CPUs; 64 MiB if unknown."""
    sizes = {}
    for cpu in cpus:
        for folder in glob.glob("/sys/devices/system/cpu/cpu{}/cache/index[0-9]*".format(cpu)):
            try:
                with open(folder + "/shared_cpu_list") as shared, open(folder + "/size") as size:
                    number, unit = re.match(r"(\d+)([KMG]?)", size.read()).groups()
                    sizes[folder[-1], shared.read()] = int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]
            except (OSError, AttributeError):
                continue
    last = max((index for index, _ in sizes), default=None)
    return sum(size for (index, _), size in sizes.items() if index == last) or 64 << 20


class Crew:
    """Threads that copy at the same time. Raises report.MeasurementError or OSError if any of them fails."""

    def __init__(self, cpus, memory, size):
        self.memory = memory
        self.size = size
        self.libc = ctypes.CDLL(None)
        self.libc.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        self.libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
        self.libc.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        self.libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self.problem = None
        self.until = 0.0
        self.rates = []
        self.meet = threading.Barrier(len(cpus) + 1)
        self.threads = [threading.Thread(target=self._work, args=(cpu,), daemon=True) for cpu in cpus]
        for thread in self.threads:
            thread.start()
        self._together()  # when all have touched their buffers

    def sample(self, seconds):
        """Return the GB/s of all threads together."""
        self.rates = []
        self.until = time.perf_counter() + seconds
        self._together()
        self._together()
        return sum(self.rates) / 1e9

    def finish(self):
        """End the threads, each of which compares what it copied."""
        self.until = None
        self._together()
        for thread in self.threads:
            thread.join()
        if self.problem:
            raise self.problem

    def _together(self):
        try:
            self.meet.wait()
        except threading.BrokenBarrierError:
            raise self.problem or reporting.MeasurementError("a thread ended")

    def _work(self, cpu):
        try:
            numa.run_on([cpu])
            numa.allocate_on(self.memory)
            with Buffer(self.libc, self.size, 0x5A) as source, Buffer(self.libc, self.size, 0) as target:
                for buffer in (source, target):
                    buffer.check_place(self.memory)
                self._copy_on_command(source, target)
        except threading.BrokenBarrierError:
            pass
        except Exception as problem:  # whatever it is: the others wait for this thread
            self.problem = problem
            self.meet.abort()

    def _copy_on_command(self, source, target):
        self.meet.wait()
        while True:
            self.meet.wait()
            if self.until is None:
                break
            self.rates.append(self._copy_until(self.until, target.address, source.address))
            self.meet.wait()
        if self.libc.memcmp(source.address, target.address, self.size):
            raise reporting.MeasurementError(
                "data came back wrong after copying in memory of node {}".format(self.memory)
            )

    def _copy_until(self, until, target, source):
        """Return the bytes read and written per second."""
        copy, size, clock = self.libc.memcpy, self.size, time.perf_counter
        start, rounds = clock(), 0
        while rounds == 0 or clock() < until:
            copy(target, source, size)
            rounds += 1
        return 2 * size * rounds / (clock() - start)


class Buffer:
    """Private memory, touched by the thread that makes it."""

    def __init__(self, libc, size, byte):
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # by default it is shared memory, which gets no huge pages
        self._map = mmap.mmap(-1, size + PAGE, flags=private)
        self._first = ctypes.c_char.from_buffer(self._map)
        self.size = size
        self.address = -(-ctypes.addressof(self._first) // PAGE) * PAGE
        libc.madvise(self.address, size, MADV_HUGEPAGE)
        libc.memset(self.address, byte, size)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        del self._first
        self._map.close()

    def check_place(self, node):
        """Raise MeasurementError if a page is on another node."""
        for offset in (0, self.size // 2, self.size - 1):
            found = numa.node_of(self.address + offset)
            if found not in (None, node):
                raise reporting.MeasurementError("memory requested from node {} came from node {}".format(node, found))
