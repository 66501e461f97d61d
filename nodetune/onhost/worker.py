"""Run work in a child process that can be left behind: a call stuck in the kernel cannot even be killed.

The child has its own session and no open file but its pipes, and it dies with its supervisor. It reports in lines of JSON.
"""

import fcntl
import json
import os
import select
import signal
import time

from . import files

PR_SET_PDEATHSIG = 1
REPORTS = 3
"""The child's end of the pipe to its supervisor. Other handles follow it."""
MAX_BYTES = 16 << 20
"""Limit for the reports of one child. A child that exceeds it is killed: no correct one does."""
KILLED_WITHIN = 0.2
POLL_SECONDS = 0.005
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


class NoAnswerError(Exception):
    """A child did not answer. One line with the event and the step."""


class Reporter:
    """The child's side of the pipe."""

    def __init__(self, handle=REPORTS):
        self._handle = handle

    def send(self, kind, content):
        files.write_all(self._handle, json.dumps([kind, content]).encode("ascii") + b"\n")

    def step(self, text):
        """Report the next step, so that a hang can be named."""
        self.send("step", text)


class Worker:
    """The supervisor's view of a child. `step` is its last reported step, `since` the time of that report.

    `work` is called with a Reporter. `output` is the child's standard output and error; it gets `more` as REPORTS + 1, …
    """

    def __init__(self, work, output=None, more=()):
        self.step, self.since = "", time.monotonic()
        self.flooded = False
        self._taken, self._rest = 0, b""
        self.pipe, there = os.pipe()
        parent = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self.pipe)
            os.close(there)
            raise
        if self.pid == 0:
            _child(work, (None, output, output, there) + tuple(more), parent)
        os.close(there)

    def take(self):
        """Read the available messages, each [kind, content]. Return None if the child has ended or flooded us.

        Block if there are none.
        """
        data = os.read(self.pipe, 1 << 16)
        self._taken += len(data)
        self.flooded = self._taken > MAX_BYTES
        if not data or self.flooded:
            return None
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        messages = [json.loads(line.decode("ascii")) for line in lines]
        for kind, content in messages:
            if kind == "step":
                self.step, self.since = content, time.monotonic()
        return messages

    def end(self, seconds=KILLED_WITHIN):
        """Kill it with its whole session and collect it. Return its wait status, or None if it is stuck in the kernel.

        A child that has ended on its own keeps its status: it was set before the pipe closed.
        """
        os.close(self.pipe)
        kill(os.killpg, self.pid)
        kill(os.kill, self.pid)  # it may not have had the time for a session of its own
        end = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            if time.monotonic() > end:
                return None
            time.sleep(POLL_SECONDS)


def ask(function, seconds, what, ending=KILLED_WITHIN):
    """Return the result of `function(step)` (JSON data), computed in a child within `seconds`. Raise NoAnswerError.

    The function calls step("text") before anything that may hang. `what` names it in the message.
    """
    child, end = Worker(lambda report: _answer(function, report)), time.monotonic() + seconds
    answers, overdue = [], True
    while select.select([child.pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        messages = child.take()
        if messages is None:
            overdue = False
            break
        answers += [message for message in messages if message[0] != "step"]
    left = child.end(ending) is None and overdue
    for kind, content in answers:
        if kind == "answer":
            return content
        raise NoAnswerError(content)
    at = " (at {})".format(child.step) if child.step else ""
    stuck = "; its process {} cannot be killed and was left behind".format(child.pid) if left else ""
    said = "did not answer within {:g} s".format(seconds) if overdue else "ended without an answer"
    raise NoAnswerError("{} {}{}{}".format(what, said, at, stuck))


def _answer(function, report):
    try:
        report.send("answer", function(report.step))
    except Exception as problem:
        report.send("failed", "{}: {}".format(type(problem).__name__, problem))


def kill(how, pid):
    """Kill by `os.kill` or `os.killpg`, whether or not it still exists."""
    try:
        how(pid, signal.SIGKILL)
    except OSError:
        pass


def prctl(option, argument):
    import ctypes  # here: it takes milliseconds, which the supervisor does not have

    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(argument), 0, 0, 0)


def die_with(parent):
    """Make the kernel kill this process when `parent` (a PID) ends, for any reason."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _child(work, handles, parent):
    """Run the work in the child and never return: the parent's work must not continue here."""
    code = 1
    try:
        os.setsid()
        die_with(parent)
        _keep_only(handles)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        work(Reporter())
        code = 0
    except BaseException as problem:
        os.write(2, "{!r}".format(problem).encode("utf-8", "backslashreplace"))
    finally:
        os._exit(code)


def _keep_only(handles):
    """Make these the only open files, as 0, 1, 2 …, so that readers of our supervisor's output do not wait for us."""
    null = os.open(os.devnull, os.O_RDWR)
    # first out of the way of what is overwritten below
    high = [fcntl.fcntl(null if each is None else each, fcntl.F_DUPFD, len(handles)) for each in handles]
    for place, handle in enumerate(high):
        os.dup2(handle, place)
    for name in os.listdir("/proc/self/fd"):  # whatever their numbers; one of them was that of the folder itself
        if int(name) >= len(handles):
            try:
                os.close(int(name))
            except OSError:
                pass
