"""Processes of one host that work together, such as the ranks of NCCL: started, monitored and killed together.

Each is a worker (nodetune/onhost/worker.py). One that dies, is stopped or gives up ends the team at
once, with a message with its name, GPU and step; its memory on the GPU is freed with its process.
"""

import os
import select
import signal
import tempfile
import time

from nodetune.onhost import worker
from . import report as reporting

LOOK_SECONDS = 0.5
"""Interval between checks of the processes while none of them reports anything."""

MAX_WORDS = 200
"""Characters of the last line that a dead process printed."""

GIVEN = worker.REPORTS + 1
"""A worker's end of the pipe from which it reads."""

LAST_WORDS_SECONDS = 3.0
"""Seconds that the first error waits for its cause: if one rank dies, the others lose their peer."""


class TeamWorker(worker.Worker):
    """A worker with a name for messages. `run(out, given)` is called in it: a Reporter, and a file that yields what `send` wrote."""

    def __init__(self, name, run):
        self.name = name
        self.at = "its start"
        self.steps = 0
        self.ended = False
        self.fault = None
        self.skip = None
        given, self._to = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the process)
        worker.Worker.__init__(
            self, lambda out: _reported(run, out, os.fdopen(GIVEN, "rb")), self._errors.fileno(), [given]
        )
        os.close(given)

    def send(self, text):
        """Send it a line. A dead member will be noticed by its silence."""
        try:
            os.write(self._to, text.encode("ascii") + b"\n")
        except OSError:
            pass

    def take(self):
        """Read what the member reports as a list of (kind, content). Set `ended`, `fault`, `at`."""
        messages = worker.Worker.take(self)
        self.ended = messages is None
        return [each for each in messages or [] if not self._own(*each)]

    def _own(self, kind, content):
        if kind == "step":
            self.at, self.steps = content, self.steps + 1
        elif kind == "fault":
            self.fault = content
        elif kind == "skip":
            self.skip = content
        return kind in ("fault", "skip")

    def stopped(self):
        """Return how the process is stopped (SIGSTOP, a debugger) or stuck in the kernel; empty if it runs."""
        return {"T": "is stopped", "t": "is held by a debugger"}.get(state(self.pid), "")

    def kill(self):
        worker.kill(os.killpg, self.pid)
        worker.kill(os.kill, self.pid)  # it may not have had the time for a session of its own

    def how_ended(self):
        """Return `was killed (SIGABRT): free(): invalid pointer` or the like, once it has ended."""
        found = _reaped(self.pid)
        if found is None:
            return "ended"
        how = "ended (exit status {})".format(os.WEXITSTATUS(found)) if os.WIFEXITED(found) else _signalled(found)
        words = self._last_words()
        return "{}: {}".format(how, words) if words else how

    def _last_words(self):
        size = os.fstat(self._errors.fileno()).st_size
        lines = os.pread(self._errors.fileno(), 4096, max(0, size - 4096)).decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1][:MAX_WORDS] if said else ""

    def close(self):
        self._errors.close()
        os.close(self.pipe)
        os.close(self._to)


def state(pid):
    """Return the kernel's letter for the state of a process: R, S, D, T, Z …; empty if it is gone."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode("ascii")
    except (OSError, IndexError):
        return ""


def _signalled(status):
    return "was killed ({})".format(signal.Signals(os.WTERMSIG(status)).name)


def _reaped(pid, seconds=2.0):
    end = time.monotonic() + seconds
    while True:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except OSError:
            return None
        if found or time.monotonic() > end:
            return status if found else None
        time.sleep(0.01)


def _reported(run, out, given):
    try:
        run(out, given)
        out.step(FINISHED)
    except reporting.SkipError as reason:
        out.send("skip", str(reason))
    except reporting.MeasurementError as reason:
        out.send("fault", str(reason))
    except Exception as problem:
        out.send("fault", reporting.where(problem))


class Team:
    """Some members. Use it as a context: none is left behind in any case."""

    def __init__(self, runs, trouble=None):
        """Start a member for each (name, run) of `runs`.

        `trouble()` is called now and then, and raises if the run has failed elsewhere.
        """
        self._trouble = trouble
        self.members = []
        for name, run in runs:
            self.members.append(TeamWorker(name, run))

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        for member in self.members:
            member.kill()
        for member in self.members:
            _reaped(member.pid)
            member.close()

    def events(self, until):
        """Yield (number of the member, kind, content) until all have ended. Raise SkipError or MeasurementError.

        `until` is a monotonic time.
        """
        while any(not member.ended for member in self.members):
            open_ones = {member.pipe: number for number, member in enumerate(self.members) if not member.ended}
            ready = select.select(list(open_ones), [], [], LOOK_SECONDS)[0]
            for pipe in ready:
                member = self.members[open_ones[pipe]]
                for kind, content in member.take():
                    yield open_ones[pipe], kind, content
                self._raise_fault(member, until)
            self._look(until, ready)

    def _ask_elsewhere(self):
        if self._trouble is not None:
            self._trouble()

    def _look(self, until, ready):
        self._ask_elsewhere()
        if not ready:
            for member in self.members:
                if not member.ended and member.stopped():
                    raise reporting.MeasurementError(
                        "{} {}{}".format(self._who(member), member.stopped(), self._at(member))
                    )
        if time.monotonic() > until:
            raise reporting.MeasurementError("not finished in time; " + self._where_all_are())

    def _raise_fault(self, member, until):
        """End the team if a member gave up or died. If it lost its peer, wait briefly for that peer's own report."""
        if member.skip:
            raise reporting.SkipError(member.skip)
        if member.ended and not member.fault and _clean(member):
            return
        if not member.ended and not member.fault:
            return
        first = self._first_to_blame(member, min(until, time.monotonic() + LAST_WORDS_SECONDS))
        if first.fault:
            raise reporting.MeasurementError(
                "{}: {}{}".format(first.name, first.fault, self._at(first)) if first.name else first.fault
            )
        raise reporting.MeasurementError("{} {}{}".format(self._who(first), first.how_ended(), self._at(first)))

    def _first_to_blame(self, member, end):
        """Return the member that died silently, if any, else the one that reported an error first."""
        while time.monotonic() < end:
            dead = [each for each in self.members if each.ended and not each.fault and not _clean(each)]
            if dead:
                return dead[0]
            self._ask_elsewhere()
            pipes = {each.pipe: each for each in self.members if not each.ended and each is not member}
            if not pipes and self._trouble is None:
                break
            for pipe in select.select(list(pipes), [], [], 0.1)[0]:
                pipes[pipe].take()
        return member

    def _who(self, member):
        return "{} (process {})".format(member.name or "a helper", member.pid)

    def _at(self, member):
        return "; it was at: " + member.at

    def _where_all_are(self):
        """Name the members that are behind the others, which wait for them."""
        running = [member for member in self.members if not member.ended]
        least = min(member.steps for member in running)
        behind = [member for member in running if member.steps == least]
        if len(behind) == len(self.members) > 1:
            return "all {} ranks were at: {}".format(len(behind), behind[0].at)
        return "; ".join("{} was at: {}".format(self._who(member), member.at) for member in behind)


def _clean(member):
    return member.at == FINISHED


FINISHED = "done"
"""The last step of a member that has finished, so that its end is expected."""
