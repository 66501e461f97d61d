"""The reports of a measurement, and its messages to and from the other hosts of its run."""

import json
import math
import os
import select
import threading
import time

from nodetune.onhost import files, protocol

BEGIN = "(begin)"
"""The topic of the supervisor's message that a measurement begins: [its name, its options, seconds]."""

PATIENT = 3600.0
MAX_TEXT_LENGTH = 2000


class SkipError(Exception):
    """There is nothing to measure, or nothing to measure it with. The reason names the package to install."""


class MeasurementError(Exception):
    """A failed measurement: one line with the fault, the place, and what to do."""


def ended(host, why):
    """Return SkipError or MeasurementError: why an awaited host sends no more, by its message under ENDED."""
    skipped = isinstance(why, dict) and "skip" in why
    return (SkipError if skipped else MeasurementError)("{}: {}".format(host, why["skip"] if skipped else why))


class Report:
    """Given to each measurement. Threads of one process may share it; forked processes must not.

    `hosts` are the names of the hosts of the run and `self` is this one's index; a run on its own has one host.
    `since` is a monotonic time, `seconds` how long after it the process is killed. `gpu_watch` is the gpu_other_load.Watch of
    the GPUs that it has `opened`. It is `faultless` as long as nothing failed.
    """

    def __init__(self, measurement, out, told=None, group=None, seconds=3600.0):
        self.measurement = measurement
        self.hosts = list((group or {}).get("hosts", ["localhost"]))
        self.self = int((group or {}).get("self", 0))
        self._start(measurement, seconds)
        self._out = out
        self._told = told
        self._lock = threading.Lock()
        self._rest = b""
        self._heard = []

    def _start(self, measurement, seconds):
        self.measurement, self.seconds, self.since = measurement, seconds, time.monotonic()
        self.gpu_watch, self.opened, self.faultless = None, [], True

    def begun(self):
        """Wait for the supervisor's message that a measurement begins. Return its name and its options."""
        topics = []
        while BEGIN not in topics:
            self._listen(PATIENT)
            topics = [each["topic"] for each in self._heard]
        place = topics.index(BEGIN)
        name, options, seconds = self._heard[place]["data"]
        self._heard = self._heard[place + 1 :]  # those before it were for the measurement before
        self._start(name, seconds)
        return name, options

    def left(self):
        """Return the seconds until the deadline. Long measurements do fewer repeats when it is near."""
        return self.since + self.seconds - time.monotonic()

    def step(self, text):
        """Report the next step, so that a hang can be named."""
        self.send("step", str(text)[:MAX_TEXT_LENGTH])

    def note(self, text):
        """Report a note to the figures."""
        self.send("note", str(text)[:MAX_TEXT_LENGTH])

    def result(self, subject, samples, unit, better="higher", metric=None, **about):
        """Report a figure: `samples` in the order of the repeats, `about` the conditions as JSON data."""
        if not samples or not all(math.isfinite(sample) for sample in samples):
            raise MeasurementError("{} of {} is {!r}".format(metric or self.measurement, subject, samples))
        self.send(
            "record",
            {
                "measurement": self.measurement,
                "metric": metric or self.measurement,
                "subject": subject,
                "samples": [float(sample) for sample in samples],
                "unit": unit,
                "better": better,
                "about": about,
            },
        )

    def skip(self, reason, subject=None, metric=None):
        """Report that one subject cannot be measured; the others continue."""
        self.without("skip", reason, subject, metric)

    def failed(self, reason, subject=None, metric=None):
        """Report that one subject failed; the others continue."""
        self.without("failed", reason, subject, metric)

    def without(self, kind, reason, subject, metric):
        self.faultless = self.faultless and kind != "failed"
        record = {"measurement": self.measurement, kind: str(reason)[:MAX_TEXT_LENGTH]}
        if subject is not None:
            record["subject"] = subject
        if metric is not None:
            record["metric"] = metric
        self.send("record", record)

    def tell(self, topic, data=None):
        """Send a message to all other hosts of the run, which receive it in the same measurement."""
        self.send("tell", {"topic": topic, "data": data})

    def hear(self, topic, seconds, sender=None):
        """Return the next message under the topic, from any host or the one with this index, in order.

        Raise MeasurementError if nothing arrives in time, or as soon as nothing can arrive. Raise SkipError if the host
        lacks what it needs.
        """
        end = time.monotonic() + min(seconds, max(0.0, self.left()))
        while True:
            found = self._find(topic, sender)
            if found is not None:
                return found["data"]
            self._check_ended(sender)
            if not self._listen(end - time.monotonic()):
                who = self._name(sender) if sender is not None else "the other host"
                raise MeasurementError("{} sent nothing about {} within {:.0f} s".format(who, topic, seconds))

    def hear_all(self, topic, seconds):
        """Return the messages of all other hosts under the topic: {index: data}. Raise like `hear`."""
        end = time.monotonic() + seconds
        others = [index for index in range(len(self.hosts)) if index != self.self]
        return {index: self.hear(topic, max(0.0, end - time.monotonic()), index) for index in others}

    def _find(self, topic, sender):
        for message in self._heard:
            if message["topic"] == topic and sender in (None, message["from"]):
                self._heard.remove(message)
                return message
        return None

    def _check_ended(self, sender):
        """Raise SkipError or MeasurementError if the awaited host (every other, if any would do) will send no more."""
        why = {each["from"]: each["data"] for each in reversed(self._heard) if each["topic"] == protocol.ENDED}
        if sender in why or (sender is None and len(why) >= len(self.hosts) - 1 > 0):
            index = sender if sender is not None else sorted(why)[0]
            raise ended(self._name(index), why[index])
        if len(self.hosts) < 2:
            raise MeasurementError("this run has no other host to receive from")

    def _name(self, index):
        return self.hosts[index] if 0 <= index < len(self.hosts) else "host {}".format(index)

    def _listen(self, seconds):
        """Handle received messages. Return False if none arrived in time."""
        if self._told is None or not select.select([self._told], [], [], max(0.0, seconds))[0]:
            return False
        data = os.read(self._told, 1 << 16)
        if not data:
            raise MeasurementError("the connection to the other hosts has ended")
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        self._heard += [json.loads(line.decode("ascii")) for line in lines]
        return True

    def send(self, kind, content):
        data = json.dumps([kind, content]).encode("ascii") + b"\n"
        with self._lock:
            files.write_all(self._out, data)


def where(problem):
    """Describe an error and the line of our code where it occurred."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = (
        "" if trace is None else " ({}:{})".format(os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
    )
    return "{!r}{}".format(problem, place)
