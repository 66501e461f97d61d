"""The process of a measurement, or of several that share the open GPUs, from both sides of the fork."""

import importlib
import json
import os
import re
import signal
import time

from nodetune.onhost import one_reader, protocol, worker
from . import kernel_files, other_load, temporary_settings
from . import report as reporting

PR_SET_CHILD_SUBREAPER = 36
KEPT_ERRORS = 4000
TOLD = worker.REPORTS + 1
ENDING_SECONDS = 10.0
"""A killed process that frees hundreds of GB of memory, or a GPU, takes seconds to disappear."""


class Measurement(worker.Worker):
    """The supervisor's view of a measurement.

    When it is `done` and `continues`, its process waits for the next one: `begin` says which.
    """

    def __init__(self, group):
        self.errors_open = True
        self.said = b""
        self.to_tell = b""
        self.own = os.getpid()
        self.errors, errors_there = os.pipe()
        told_there, self.told = os.pipe()
        worker.Worker.__init__(self, lambda _: _child(group), errors_there, [told_there])
        for handle in (told_there, errors_there):
            os.close(handle)
        os.set_blocking(self.told, False)

    def begin(self, name, options, seconds):
        """Start a measurement. `seconds`: its deadline from now."""
        self.name, self.seconds, self.start = name, seconds, time.monotonic()
        self.done, self.continues, self.step, self.gpus = False, False, "", []
        self.to_tell = b""
        self.tell({"from": 0, "topic": reporting.BEGIN, "data": [name, options, seconds]})

    def overdue(self):
        return time.monotonic() - self.start - self.seconds

    def tell(self, message):
        """Pass on a message of another host as soon as the pipe has space."""
        if len(self.to_tell) < worker.MAX_BYTES:
            self.to_tell += json.dumps(message).encode("ascii") + b"\n"

    def send(self):
        """Write what the pipe has space for, unless the measurement has ended."""
        try:
            self.to_tell = self.to_tell[os.write(self.told, self.to_tell[:4096]) :]
        except BlockingIOError:
            pass
        except OSError:
            self.to_tell = b""

    def take_errors(self):
        """Keep the end of its output."""
        data = os.read(self.errors, 1 << 16)
        self.said = (self.said + data)[-KEPT_ERRORS:]
        self.errors_open = bool(data)

    def last_words(self):
        lines = self.said.decode("utf-8", "backslashreplace").strip().splitlines()
        return "; it printed: " + lines[-1][:300] if lines else ""

    def flood(self):
        """Return why the process was ended early, if it was."""
        return "sent more than {} MiB and was killed".format(worker.MAX_BYTES >> 20) if self.flooded else None

    def end_all(self, but=()):
        """Kill the rest of it and everything that it started, `but` some ids that are stuck in the kernel.

        Return (exit status or None, ids that cannot be killed).
        """
        for handle in (self.pipe, self.errors, self.told):
            os.close(handle)
        status, end = None, time.monotonic() + ENDING_SECONDS
        while True:
            if status is None:  # once it was taken in, its number may be another group's
                worker.kill(os.killpg, self.pid)
            status = reap(self.pid, status)
            left = [pid for pid in children(self.own) if pid not in but]
            for pid in left:
                worker.kill(os.kill, pid)
            if not left or time.monotonic() > end:
                return status, left
            time.sleep(0.02)


def reap(wanted, status=None):
    """Collect all children that have ended; return the exit status of the wanted one if it is among them."""
    try:
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status
            status = found if pid == wanted else status
    except OSError:
        return status


def children(parent):
    """Return the processes with this parent; with the subreaper set, orphans too.

    This includes a dead process whose threads still free memory: its CPU time is unknown until then.
    """
    return [pid for pid, each in other_load.processes().items() if each.parent == parent]


def _child(group):
    hold_forks()
    first_to_go()
    cpus = os.sched_getaffinity(0)
    report = reporting.Report("", worker.REPORTS, TOLD, group)
    continues = True
    while continues:
        name, options = report.begun()
        one_reader.call_ourselves("nodetune:" + re.sub(r"[^\w:.-]", "", name))
        _measure(name, options, report)
        continues = bool(report.opened) and report.faultless and _given_back(report.opened)
        os.sched_setaffinity(0, cpus)
        report.send("done", continues)


def _given_back(opened):
    """Free what a measurement took on its GPUs. Return whether they can be used for the next one."""
    try:
        for gpu in opened:
            gpu.give_back()
    except reporting.MeasurementError:
        return False
    return True


def _measure(name, options, report):
    try:
        with temporary_settings.held(kernel_files.of_options(options)):
            module(name).measure(options, report)
    except reporting.SkipError as reason:
        _without(report, "skip", str(reason))
    except reporting.MeasurementError as reason:
        _without(report, "failed", str(reason))
    except MemoryError:
        _without(report, "failed", "this host has too little free memory for it")
    except Exception as problem:
        _without(report, "failed", "the {} measurement failed: {}".format(name, reporting.where(problem)))
    if report.gpu_watch:
        report.send("gpus", report.gpu_watch.told())


def module(name):
    """Return the file of a measurement. Raise what its import raises."""
    return importlib.import_module("nodetune.measurements." + name)


def _without(report, kind, reason):
    report.without(kind, reason, None, None)
    if len(report.hosts) > 1:
        report.tell(protocol.ENDED, {"skip": reason} if kind == "skip" else reason)


def hold_forks():
    """Make forks of a measurement die with it too, so that even a killed supervisor leaves nothing (Python 3.7)."""
    register = getattr(os, "register_at_fork", None)
    if register:
        register(after_in_child=lambda: worker.prctl(worker.PR_SET_PDEATHSIG, signal.SIGKILL))


def first_to_go():
    """Make the kernel kill the measurement first if memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
