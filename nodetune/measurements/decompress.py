"""How fast the CPUs unpack training data: zstd and lz4, one core alone and all cores at once, in GB/s of unpacked data.

Metrics zstd and lz4 (one core), zstd_all and lz4_all (one thread a core, the sum). A loader keeps up with a drive if its cores
unpack what the drive reads: read bandwidth times `ratio`, over the figure of one core, is the number of cores that takes.
Data: 4 MiB of words of random lengths, packed by zstd's level 3 and by lz4's default; each thread unpacks into memory of its
own over and over for SECONDS_A_SAMPLE, and compares the last result byte by byte. Statistic: the median of the repeats.

Manually: zstd -b3 and lz4 -b1 of a file of one's own data (both count unpacked bytes).
Options: repeats, threads (at most, for all cores).
"""

import ctypes
import random
import threading
import time

from nodetune.measurements.host import numa
from nodetune.measurements.host import report as reporting

SECONDS = 60.0
SCOPE = "host"
ORDER = 35
SUITES = {"full": {}}
TOLERANCE = {"": {"peers": 10, "baseline": 10, "drift": 5}}
SUSPECT = "the clock of the CPUs, or their memory"
SECONDS_A_SAMPLE = 0.15
SIZE = 4 << 20
WORDS = 512
LEVEL = 3


def measure(options, report):
    cpus = [cpu for cpus in numa.nodes().values() for cpu in numa.cores(cpus)[0]]
    cpus = cpus[: int(options["threads"])] if options.get("threads") else cpus
    data = words(SIZE)
    for name, make in (("zstd", Zstd), ("lz4", Lz4)):
        try:
            codec = make()
        except OSError:
            package = {"zstd": "libzstd1 or libzstd", "lz4": "liblz4-1 or lz4-libs"}[name]
            report.skip("no lib{}.so.1 on this host: install {}".format(name, package), "host", name)
            continue
        packed = codec.pack(data)
        for metric, some in ((name, cpus[:1]), (name + "_all", cpus)):
            report.step("{} on {} cores".format(name, len(some)))
            samples = [_sample(codec, packed, data, some) for _ in range(int(options.get("repeats", 5)) + 1)][1:]
            ratio = round(len(data) / len(packed), 2)
            report.result("host", samples, "GB/s", metric=metric, threads=len(some), ratio=ratio, checked=True)


def words(size):
    """Return text of that many bytes: words of 2 to 11 letters, the same on every host."""
    pick = random.Random(5)
    known = [bytes(pick.choices(range(97, 123), k=pick.randrange(2, 12))) for _ in range(WORDS)]
    return b" ".join(pick.choices(known, k=size // 3))[:size]


class Zstd:
    """libzstd. Raises OSError if it is missing."""

    def __init__(self):
        library = ctypes.CDLL("libzstd.so.1")
        self._pack, self._unpack = library.ZSTD_compress, library.ZSTD_decompress
        for function in (self._pack, self._unpack):
            function.restype = ctypes.c_size_t
        buffers = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        self._unpack.argtypes, self._pack.argtypes = buffers, buffers + [ctypes.c_int]

    def pack(self, data):
        out = ctypes.create_string_buffer(2 * len(data))
        count = self._pack(ctypes.addressof(out), len(out), data, len(data), LEVEL)
        return out.raw[:count]

    def unpack(self, into, packed, size):
        """Unpack to an address. Return the bytes that came out."""
        return self._unpack(into, size, packed, len(packed))


class Lz4:
    """liblz4. Raises OSError if it is missing."""

    def __init__(self):
        library = ctypes.CDLL("liblz4.so.1")
        self._pack, self._unpack = library.LZ4_compress_default, library.LZ4_decompress_safe
        for function in (self._pack, self._unpack):
            function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]

    def pack(self, data):
        out = ctypes.create_string_buffer(2 * len(data))
        count = self._pack(data, ctypes.addressof(out), len(data), len(out))
        return out.raw[:count]

    def unpack(self, into, packed, size):
        """Unpack to an address. Return the bytes that came out."""
        return self._unpack(packed, into, len(packed), size)


def _sample(codec, packed, data, cpus):
    """Return the GB/s of all threads together. Raise MeasurementError."""
    rates, problems, meet = [], [], threading.Barrier(len(cpus))

    def work(cpu):
        try:
            numa.run_on([cpu])
            into = ctypes.create_string_buffer(len(data))
            codec.unpack(ctypes.addressof(into), packed, len(data))  # its pages are touched now
            meet.wait()
            rates.append(_rate(codec, packed, into))
            _check(into, data, cpu)
        except Exception as problem:  # whatever it is: the others wait for this thread
            problems.append(problem)
            meet.abort()

    threads = [threading.Thread(target=work, args=(cpu,), daemon=True) for cpu in cpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = next((each for each in problems if not isinstance(each, threading.BrokenBarrierError)), None)
    if first is not None:
        raise first
    return sum(rates) / 1e9


def _rate(codec, packed, into):
    start, rounds, size, address = time.perf_counter(), 0, len(into), ctypes.addressof(into)
    while rounds == 0 or time.perf_counter() - start < SECONDS_A_SAMPLE:
        codec.unpack(address, packed, size)
        rounds += 1
    return size * rounds / (time.perf_counter() - start)


def _check(into, data, cpu):
    if into.raw != data:
        raise reporting.MeasurementError("data came back wrong after unpacking on CPU {}".format(cpu))
