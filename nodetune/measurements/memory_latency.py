"""Time of one unpredictable memory read for each NUMA node, from its own CPUs and from those of other nodes.

What, in ns: a core follows pointers through a buffer of many times its last cache, each to a line far away, so that every
step waits for memory. metric `local`: the memory of its own node; `remote`: of another; every pair of nodes, both ways;
`far_share`: `remote` in % of what the same core waits for near memory (less is better).
How: one core of the node follows the pointers with three instructions of machine code (CODE), because Python itself
would take longer than the memory; the buffer is on the node under test (checked), in huge pages where the kernel gives
them: without huge pages each step pays for an address translation, too.
Where the kernel forbids to run what was written (SELinux execmem), it is skipped. Time is the thread's own CPU time: what
others take of the core does not count, what they take of the memory does.
Statistic: the median of the repeats.
Manually: mlc --latency_matrix (Intel), or lmbench's lat_mem_rd -P 1 with numactl -N and -m
"""

import array
import ctypes
import mmap
import platform
import statistics
import time

from nodetune.onhost import files
from nodetune.measurements.host import numa
from nodetune.measurements.host import report as reporting
from . import memory

SECONDS = 60.0
SCOPE = "host"
ORDER = 12
SUITES = {"full": {"seconds": 240}}
TOLERANCE = {"": {"peers": 10, "baseline": 10, "drift": 4}}
SUSPECT = "{subject}: the memory's speed and population, huge pages, or the link between the nodes"
LINE = 64
MAX_BYTES = 1 << 30
MIN_BYTES = 64 << 20
STEP = 0x2545F491
"""The target of a pointer: line * STEP + 1, which visits every line once (Hull and Dobell) as STEP % 4 is 1."""

CODE = {
    # next: mov rdi, [rdi]; dec rsi; jnz next; mov rax, rdi; ret
    "x86_64": b"\x48\x8b\x3f\x48\xff\xce\x75\xf8\x48\x89\xf8\xc3",
    # next: ldr x0, [x0]; subs x1, x1, #1; b.ne next; ret
    "aarch64": b"\x00\x00\x40\xf9\x21\x04\x00\xf1\xc1\xff\xff\x54\xc0\x03\x5f\xd6",
}
"""follow(pointer, steps): returns where the last step led."""


def measure(options, report):
    """Measure. Options: nodes (numbers), repeats, size (bytes), steps (of one sample)."""
    follow = Follow()
    layout = numa.nodes()
    nodes = [node for node in options.get("nodes") or sorted(layout) if node in layout]
    for here in nodes:
        near = None
        for there in [here] + [node for node in nodes if node != here]:
            subject = memory.pair(here, there)
            report.step("following pointers, {}".format(subject))
            metric = "local" if here == there else "remote"
            try:
                found = _one(report, follow, options, (subject, metric, numa.cores(layout[here])[0][0], here, there))
            except (reporting.MeasurementError, OSError) as problem:
                report.failed(getattr(problem, "strerror", None) or str(problem), subject, metric)
                continue
            near = found if here == there else near
            if here != there and near:
                report.result(subject, [100.0 * found / near], "%", "lower", metric="far_share", local=False)


def _one(report, follow, options, what):
    """Report a figure and return its median."""
    subject, metric, cpu, here, there = what
    numa.run_on([cpu])
    numa.allocate_on(there)
    size = int(options.get("size") or size_for(memory.last_cache([cpu]), numa.free_bytes(there)))
    steps = int(options.get("steps", 2000000))
    with Lines(follow.libc, size) as lines:
        lines.check_place(there)
        samples = [follow.nanoseconds(lines, steps) for _ in range(int(options.get("repeats", 3)) + 1)]
    thp = files.text("/sys/kernel/mm/transparent_hugepage/enabled")
    about = {"size": size, "local": here == there, "distance": numa.distance(here, there), "thp": thp}
    report.result(subject, samples[1:], "ns", "lower", metric=metric, **about)
    return statistics.median_high(samples[1:])


def size_for(cache, free):
    """Return the bytes of a buffer, a power of two: four times the cache. Raise MeasurementError if memory is too small."""
    wanted = MIN_BYTES
    while wanted < 4 * cache and wanted < MAX_BYTES:
        wanted *= 2
    if wanted > free // 4:
        raise reporting.MeasurementError(
            "only {} MiB of the node's memory are free, of which at most a quarter is used: too little".format(
                free >> 20
            )
        )
    return wanted


class Lines(memory.Buffer):
    """A buffer in which each line points to another one far away; `at`: the address of one."""

    def __init__(self, libc, size):
        memory.Buffer.__init__(self, libc, size, 0)
        count, first = size // LINE, self.address
        words = array.array("Q", (first + LINE * ((STEP * line + 1) & (count - 1)) for line in range(count)))
        whole = (ctypes.c_uint64 * (size // 8)).from_address(first)
        memoryview(whole).cast("B").cast("Q")[:: LINE // 8] = words
        self.at = first


class Follow:
    """The machine code that follows pointers. Raise SkipError if this CPU has no code or it must not run."""

    def __init__(self):
        code = CODE.get(platform.machine())
        if code is None:
            raise reporting.SkipError("no code for this type of CPU ({})".format(platform.machine()))
        self.libc = ctypes.CDLL(None)
        self.libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self.libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
        try:
            self._area = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        except OSError as problem:
            raise reporting.SkipError("this kernel does not run newly written code: {}".format(problem.strerror))
        self._area.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._area))
        self._run = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(address)

    def nanoseconds(self, lines, steps):
        """Return the time of a step, and keep the last position."""
        start = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        lines.at = self._run(lines.at, steps)
        return (time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - start) / steps * 1e9
