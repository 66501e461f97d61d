"""One measurement in a process of its own, from both sides of the fork."""

import ctypes
import fcntl
import importlib
import json
import os
import re
import signal
import time

from . import report as reporting

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MOST_BYTES = 16 << 20
KEPT_ERRORS = 4000
REPORTS, TOLD = 3, 4
ENDING_SECONDS = 10.0
"""A killed process that gives back hundreds of GB of memory, or a GPU, takes seconds to be gone."""


def prctl(option, argument):
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(argument), 0, 0, 0)


def die_with(parent):
    """Have this process killed when `parent` (a process id) is gone, however it went."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Worker:
    """A measurement as its supervisor sees it. `seconds`: its deadline, from now."""

    def __init__(self, name, options, seconds, group):
        self.name = name
        self.now_at = ""
        self.failed = None
        self.done = False
        self.errors_open = True
        self.said = b""
        self.to_tell = b""
        self.start = time.monotonic()
        self.seconds = seconds
        self._taken = 0
        self._rest = b""
        self.own = os.getpid()
        self.pipe, there = os.pipe()
        self.errors, errors_there = os.pipe()
        told_there, self.told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _child(self, options, group, (there, told_there, errors_there))
        for handle in (there, told_there, errors_there):
            os.close(handle)
        os.set_blocking(self.told, False)

    def overdue(self):
        return time.monotonic() - self.start - self.seconds

    def tell(self, message):
        """Pass on what another host told, as soon as there is room for it."""
        if len(self.to_tell) < MOST_BYTES:
            self.to_tell += json.dumps(message).encode("ascii") + b"\n"

    def send(self):
        """Write what there is room for. A measurement that has ended does not want to hear it."""
        try:
            self.to_tell = self.to_tell[os.write(self.told, self.to_tell[:4096]) :]
        except BlockingIOError:
            pass
        except OSError:
            self.to_tell = b""

    def take(self):
        """What it said since: a list of (kind, content); None when it has ended. A flood counts as a failure."""
        data = os.read(self.pipe, 1 << 16)
        self._taken += len(data)
        if not data:
            return None
        if self._taken > MOST_BYTES:
            self.failed = "said more than {} MiB, and was ended".format(MOST_BYTES >> 20)
            return None
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        return [json.loads(line.decode("ascii")) for line in lines]

    def take_errors(self):
        """Keep the end of what it printed."""
        data = os.read(self.errors, 1 << 16)
        self.said = (self.said + data)[-KEPT_ERRORS:]
        self.errors_open = bool(data)

    def last_words(self):
        lines = self.said.decode("utf-8", "backslashreplace").strip().splitlines()
        return "; it printed: " + lines[-1][:300] if lines else ""

    def end(self, but=()):
        """Kill what is left of it and of all that it started, `but` some ids that are known to be stuck in the kernel.

        Returns (exit status or None, ids that cannot be killed).
        """
        for handle in (self.pipe, self.errors, self.told):
            os.close(handle)
        status, end = None, time.monotonic() + ENDING_SECONDS
        while True:
            if status is None:  # once it was taken in, its number may be another group's
                _kill(os.killpg, self.pid)
            left = [pid for pid in children(self.own) if pid not in but]
            for pid in left:
                _kill(os.kill, pid)
            status = reap(self.pid, status)
            if not left or time.monotonic() > end:
                return status, left
            time.sleep(0.02)


def reap(wanted, status=None):
    """Take in all children that have ended; returns the exit status of the wanted one when it is among them."""
    try:
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status
            status = found if pid == wanted else status
    except OSError:
        return status


def children(parent):
    """The processes whose parent this is: with the subreaper set, also orphans of what it started."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/{}/stat".format(entry), "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != b"Z":
                found.append(int(entry))
    return found


def _kill(how, pid):
    try:
        how(pid, signal.SIGKILL)
    except OSError:
        pass


def _child(worker, options, group, handles):
    """Never returns. Of what was open, only the three pipes stay."""
    try:
        os.setsid()
        die_with(worker.own)
        hold_forks()
        call_ourselves("nodetune:" + worker.name)
        null = os.open(os.devnull, os.O_RDWR)
        # first out of the way of what is overwritten below
        null, reports, told, errors = (fcntl.fcntl(handle, fcntl.F_DUPFD, TOLD + 1) for handle in (null, *handles))
        for place, handle in ((0, null), (1, errors), (2, errors), (REPORTS, reports), (TOLD, told)):
            os.dup2(handle, place)
        os.closerange(5, 4096)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        first_to_go()
        _measure(worker.name, options, reporting.Report(worker.name, REPORTS, TOLD, group, worker.seconds))
    except BaseException as problem:
        os.write(2, "{!r}".format(problem).encode("utf-8", "backslashreplace"))
        os._exit(1)
    os._exit(0)


def _measure(name, options, report):
    try:
        module = importlib.import_module("." + name, __package__)
        module.measure(options, report)
    except reporting.Skip as reason:
        _without(report, "skip", str(reason))
    except reporting.Fault as reason:
        _without(report, "failed", str(reason))
    except MemoryError:
        _without(report, "failed", "this host has not enough free memory for it")
    except Exception as problem:
        _without(report, "failed", "the {} measurement failed: {}".format(name, where(problem)))
    report.send("done", None)


def _without(report, kind, reason):
    report.without(kind, reason, None, None)
    if len(report.hosts) > 1:
        report.tell(reporting.ENDED, {"skip": reason} if kind == "skip" else reason)


def where(problem):
    """What went wrong and in which line of ours, for the person who gets it reported."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = (
        "" if trace is None else " ({}:{})".format(os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
    )
    return "{!r}{}".format(problem, place)


def hold_forks():
    """Have what a measurement forks die with it too, so that even a killed supervisor leaves nothing (Python 3.7)."""
    register = getattr(os, "register_at_fork", None)
    if register:
        register(after_in_child=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL))


def first_to_go():
    """Where memory runs out, the kernel should end the measurement, not somebody's work."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def call_ourselves(name):
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(re.sub(r"[^\w:.-]", "", name)[:15])
    except OSError:
        pass
