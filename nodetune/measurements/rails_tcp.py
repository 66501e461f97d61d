"""A rail over TCP: each host sends to the next one in the ring and receives from the one before, with checksums."""

import contextlib
import os
import socket
import struct
import threading
import time
import zlib

from . import gpus, pairs
from . import report as reporting

CHUNK = 1 << 18
HEAD = struct.Struct("!I")
SECONDS, REPEATS, SETTLE_SECONDS = 0.5, 4, 0.5
STALLED_SECONDS = 8.0
STALLED = "nothing moved for {:.0f} s".format(STALLED_SECONDS)
SUBJECT = "rail 0"


def run(options, report):
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
    span, repeats = float(options.get("seconds") or SECONDS), int(options.get("repeats") or REPEATS)
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
