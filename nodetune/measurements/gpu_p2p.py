"""Copies between the GPUs of one host: every ordered pair one way, every pair both ways at once.

Metrics p2p ("GPU0→GPU1": GPU0's copy engine writes into GPU1's memory) and p2p_both ("GPU0↔GPU1": the sum of both
directions), GB/s. A sample is `copies` copies of `size` bytes in a row, timed by the events of the writing GPU; one
sample before them does not count. Pair after pair, so that none disturbs another. Each GPU sends a pattern of its own,
and the receiver compares it word by word. `peer_access` says whether the copy was direct; if the GPUs
cannot access each other, the driver copies through host memory, which is measured too.

Manually: nvbandwidth -t device_to_device_memcpy_write_ce, device_to_device_bidirectional_memcpy_write_ce.
Options: gpus, size (bytes), copies, repeats, only (pairs to measure, ["GPU0→GPU1", …] or [[0, 1], …]), both (False: one
way only).
"""

import re

from nodetune.measurements.cuda import gpu_kernels, gpus
from nodetune.measurements.host import report as reporting

SECONDS = 45.0
SCOPE = "gpus"
SHARES_CUDA = True
GPUS = 2
ORDER = 60
SUITES = {"quick": {"options": {"both": False}}, "full": {"seconds": 120}}
TOLERANCE = {"": {"peers": 3, "baseline": 5, "drift": 1}}


def measure(options, report):
    only = pairs_asked(options.get("only"))
    if only is not None and options.get("gpus") is None:
        options = dict(options, gpus=sorted({number for pair in only for number in pair}))
    found = gpus.opened(options, report)
    if len(found) < 2:
        raise reporting.SkipError("two GPUs are needed, found {}".format(len(found)))
    ends = {end.number: end for end in gpus.prepared(found, report, "preparing", lambda gpu: End(gpu, options))}
    for one, other in pairs(sorted(ends), only):
        _pair(Pair(ends[one], ends[other], options), options.get("both", True), only, report)


def pairs_asked(only):
    """Return the option `only` as pairs of numbers, or None for all pairs. Raise MeasurementError."""
    if only is None:
        return None
    found = [[int(number) for number in re.findall(r"\d+", each)] if isinstance(each, str) else each for each in only]
    for asked, pair in zip(only, found):
        if len(pair) != 2 or pair[0] == pair[1]:
            raise reporting.MeasurementError("{!r} is not a pair of GPUs: write GPU0→GPU1".format(asked))
    return [(int(one), int(other)) for one, other in found]


def pairs(numbers, only):
    """Return the unordered pairs to measure, lower number first."""
    found = [(one, other) for one in numbers for other in numbers if one < other]
    return [(one, other) for one, other in found if only is None or (one, other) in only or (other, one) in only]


class End:
    """A GPU with data to send and a buffer to receive."""

    def __init__(self, gpu, options):
        self.gpu, self.number = gpu, int(gpu.name[3:])
        self.kernels = gpu_kernels.Kernels(gpu)
        self.size = gpus.fitting(gpu, int(options.get("size", 256 << 20)), 2)
        self.source, self.target = gpu.allocate(self.size), gpu.allocate(self.size)
        self.stream = gpu.stream()
        self.kernels.fill(self.source, self.size, self.number + 1)
        gpu.wait()


class Pair:
    """Two ends and the copies that can be queued between them."""

    def __init__(self, one, other, options):
        self.one, self.other = one, other
        self.size = min(one.size, other.size)
        self.copies, self.repeats = int(options.get("copies", 4)), int(options.get("repeats", 6))

    def connect(self):
        """Enable access in both directions. Return whether copies are direct. Raise MeasurementError."""
        direct = self.one.gpu.reaches(self.other.gpu) and self.other.gpu.reaches(self.one.gpu)
        if direct:
            self.one.gpu.enable(self.other.gpu)
            self.other.gpu.enable(self.one.gpu)
        return direct

    def turned(self):
        turned = Pair(self.other, self.one, {})
        turned.size, turned.copies, turned.repeats = self.size, self.copies, self.repeats
        return turned

    def forget(self):
        """Overwrite old data that could pass for a copy."""
        for end in (self.one, self.other):
            end.gpu.poison(end.target, self.size)
            end.gpu.wait()

    def send(self):
        for _ in range(self.copies):
            one, other = self.one, self.other
            one.gpu.to_peer(other.gpu, other.target, one.source, self.size, one.stream)

    def one_way(self):
        """Return the seconds of each repeat. Raise MeasurementError."""
        self.forget()
        seconds = gpus.Repeats(self.one.gpu, self.one.stream, self.send, self.repeats).seconds()
        self.confirm()
        return seconds

    def both_ways(self):
        """Return the seconds of each repeat, until the slower of both directions ends. Raise MeasurementError.

        Both directions start together.
        """
        self.forget()
        back, one, other = self.turned(), self.one, self.other
        began, ended = one.gpu.event(), other.gpu.event()

        def work():
            one.gpu.record(began, one.stream)
            other.gpu.after(other.stream, began)
            self.send()
            back.send()
            other.gpu.record(ended, other.stream)
            one.gpu.after(one.stream, ended)

        seconds = gpus.Repeats(one.gpu, one.stream, work, self.repeats).seconds()
        self.confirm()
        back.confirm()
        return seconds

    def confirm(self):
        """Raise MeasurementError if the received data differs from the sent data."""
        sender = "a copy from {}".format(self.one.gpu.name)
        self.other.kernels.confirm(self.other.target, self.size, self.one.number + 1, None, sender)


def _pair(pair, both, only, report):
    """Measure one way, the other way, and both ways at once."""
    names = [end.gpu.name for end in (pair.one, pair.other)]
    report.step("{} and {}: enabling access".format(*names))
    way = "{}↔{}".format(*names)
    with gpus.apart(report, way):
        about = {"size": pair.size, "peer_access": pair.connect(), "engine": "the sender's", "checked": True}
        for each in (pair, pair.turned()):
            if only is None or (each.one.number, each.other.number) in only:
                _way(
                    each, each.one_way, "{}→{}".format(each.one.gpu.name, each.other.gpu.name), "p2p", 1, about, report
                )
        if both:
            _way(pair, pair.both_ways, way, "p2p_both", 2, about, report)


def _way(pair, run, subject, metric, directions, about, report):
    report.step("{}: copies".format(subject))
    with gpus.apart(report, subject, metric):
        samples = gpus.rates(pair.size * pair.copies * directions, run())
        report.result(subject, samples, "GB/s", metric=metric, **about)
