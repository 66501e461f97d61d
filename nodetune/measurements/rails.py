"""Bandwidth between some hosts rail by rail, all rails at once: a ring over GPU r of each host, for every r.

What: with GPUs, NCCL's all_reduce over communicators of one GPU a host, busbw in GB/s; without, bytes over TCP in Gb/s that each
host receives from the one before it in the ring while it sends to the one after it. One figure a rail, so that a slow GPU or
adapter differs from a slow host. Two hosts are a pair; `verify --find-slow` runs many pairs at once.
How: NCCL as in training (see nccl), its data checked before. TCP: one connection a rail, CHUNK bytes at a time, each with its
checksum. A rail that moves nothing for STALLED_SECONDS is given up as a hang.
Statistic: the median of the repeats.
Manually: all_reduce_perf with NCCL_TESTS_SPLIT_MASK, or iperf3 between two hosts.
Options: over (nccl or tcp), size (bytes), gpus, nccl, repeats, seconds (TCP, a repeat), and those of pairs.
"""

import contextlib
import os
import socket
import struct
import threading
import time
import zlib

from nodetune.measurements.cuda import gpus
from nodetune.measurements.host import pairs
from nodetune.measurements.host import report as reporting
from nodetune.measurements.nccl_support import nccl_cases, rails_nccl

SECONDS = 60.0
SCOPE = "collective"
ORDER = 106
SUITES = {}
TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 2}}
BY_NAME = True
DRIVER = "/dev/nvidiactl"
CHUNK = 1 << 18
HEAD = struct.Struct("!I")
SPAN_SECONDS, REPEATS, SETTLE_SECONDS = 0.5, 4, 0.5
STALLED_SECONDS = 8.0
STALLED = "nothing moved for {:.0f} s".format(STALLED_SECONDS)
SUBJECT = "rail 0"


def measure(options, report):
    if len(report.hosts) < 2:
        raise reporting.SkipError("two hosts are needed: select more")
    over = options.get("over") or ("nccl" if os.path.exists(DRIVER) else "tcp")
    if over == "nccl":
        rails_nccl.run(nccl_cases.checked(rails_nccl.options_of(options)), report)
    elif over == "tcp":
        _over_tcp(options, report)
    else:
        raise reporting.MeasurementError("over {}: only nccl and tcp are possible".format(over))


def _over_tcp(options, report):
    """Measure, and record what this host receives. Raise MeasurementError."""
    before, after = (report.self - 1) % len(report.hosts), (report.self + 1) % len(report.hosts)
    with contextlib.closing(_listening()) as door, pairs.offer(report, options) as known:
        report.tell("rail", dict(known, port=door.getsockname()[1]))
        heard = report.hear_all("rail", report.left() - 1)
        there, here = _connected(heard[after], report.hosts[after]), _accepted(door, report.hosts[before])
        report.tell("rail connected")
        report.hear_all("rail connected", report.left() - 1)
        with contextlib.closing(there), contextlib.closing(here):
            _move(options, report, there, Received(here, report.hosts[before]))
        report.tell("rail done")
        report.hear_all("rail done", report.left() - 1)


def _listening():
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.bind(("", 0))
    door.listen(8)
    door.settimeout(STALLED_SECONDS)
    return door


def _connected(known, name):
    address, _ = pairs.way_to(known, name)
    (port,) = pairs.ports_of([known.get("port")], name)
    try:
        return socket.create_connection((address, port), STALLED_SECONDS)
    except OSError as problem:
        raise reporting.MeasurementError("{} at {}: {}".format(name, address, problem))


def _accepted(door, name):
    try:
        found, _ = door.accept()
    except OSError:
        raise reporting.MeasurementError("{}: {}: it does not connect".format(name, STALLED))
    found.settimeout(STALLED_SECONDS)
    return found


def _move(options, report, there, received):
    """Send and receive at once, and record the figure. Raise MeasurementError."""
    span, repeats = float(options.get("seconds") or SPAN_SECONDS), int(options.get("repeats") or REPEATS)
    report.step("sending and receiving")
    sender = Sender(there, SETTLE_SECONDS + span * repeats)
    sender.start()
    received.read_all()
    sender.join()
    problem = received.problem or sender.problem
    if problem:
        raise reporting.MeasurementError(problem)
    samples = received.rates(SETTLE_SECONDS, repeats)
    if not samples:
        raise reporting.MeasurementError("{}: too little moved for a figure".format(received.name))
    about = {"nodes": len(report.hosts), "over": "tcp", "bytes": received.marks[-1][1]}
    report.result(SUBJECT, samples, "Gb/s", **about)


class Sender(threading.Thread):
    """Sends random chunks for some seconds, each behind its checksum."""

    def __init__(self, there, seconds):
        threading.Thread.__init__(self)
        self._there, self._seconds = there, seconds
        self.problem = None

    def run(self):
        data, end = os.urandom(CHUNK), time.monotonic() + self._seconds
        try:
            while time.monotonic() < end:
                self._there.sendall(HEAD.pack(zlib.crc32(data) & 0xFFFFFFFF) + data)
            self._there.shutdown(socket.SHUT_WR)
        except socket.timeout:
            self.problem = "sending: " + STALLED
        except OSError as problem:
            self.problem = "sending: {}".format(problem)


class Received:
    """Reads and checks what arrives. `marks`: (time, bytes until then) of each piece."""

    def __init__(self, here, name):
        self.name, self.problem, self.marks = name, None, []
        self._here, self._bytes, self._buffer = here, 0, bytearray(HEAD.size + CHUNK)

    def read_all(self):
        try:
            while self._read_one():
                pass
        except socket.timeout:
            self.problem = "{}: {}".format(self.name, STALLED)
        except OSError as problem:
            self.problem = "{}: {}".format(self.name, problem)

    def _read_one(self):
        view, filled = memoryview(self._buffer), 0
        while filled < len(view):
            count = self._here.recv_into(view[filled:])
            if not count:
                return False
            filled, self._bytes = filled + count, self._bytes + count
            self.marks.append((time.monotonic(), self._bytes))
        if HEAD.unpack_from(self._buffer)[0] != zlib.crc32(view[HEAD.size :]) & 0xFFFFFFFF:
            self.problem = self.problem or "{}: {}: its checksum is another".format(self.name, gpus.WRONG)
        return True

    def rates(self, settle, repeats):
        """Return the Gb/s of each of the equal spans after the first seconds; nothing if they are too short."""
        if not self.marks:
            return []
        start, end = self.marks[0][0] + settle, self.marks[-1][0]
        span = (end - start) / repeats
        parts = [[mark for mark in self.marks if 0 <= mark[0] - start - n * span <= span] for n in range(repeats)]
        if span <= 0 or any(len(part) < 2 for part in parts):
            return []
        return [(part[-1][1] - part[0][1]) * 8 / (part[-1][0] - part[0][0]) / 1e9 for part in parts]
