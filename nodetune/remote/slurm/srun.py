"""A running srun: the output of its tasks, line by line, and why tasks have ended."""

import os
import re
import select
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import UnreachableError
from nodetune.onhost import cpu_list, protocol
from nodetune.remote.login import pipes, session

LEAVING_SECONDS = 15.0
"""A step whose input has ended is over as soon as all its processes are gone."""

URGED_SECONDS = 5.0
"""Seconds that srun needs to end a step, or salloc to release nodes, after a signal."""

CHUNK = 1 << 16
KEPT_ERRORS = 16 << 10
MAX_REST = 1 << 16
MAX_BYTES = SessionOptions().most_said
"""Limit for the total output of one task."""

OPTIONS = (
    *("--label", "--input=all", "--output=all"),
    *("--cpu-bind=none", "--mem=0", "--mpi=none", "--kill-on-bad-exit=0", "--wait=0"),
)
"""A task sees its job's whole share of the node (a step's --mem=0 is all memory of the job) and survives other tasks.

https://slurm.schedmd.com/srun.html
"""

LABELLED = re.compile(rb"^ *(\d+): (.*)$", re.DOTALL)
NO_BINDING = "lacks support for cpu binding"
"""srun's message about --cpu-bind=none where it would not bind anyway."""

TASK_ENDED = re.compile(r"srun: error: \S+: tasks? ([\d,-]+): (.+)")
NOT_STARTED = re.compile(r"srun: error: Task launch for \S+ failed on node (\S+): (.+)")
CONSEQUENCE = re.compile(r"srun: (?:error: Application launch failed|Job step aborted|Terminating )")
"""Messages of srun that follow from an earlier message."""

Told = Iterator[tuple[int, Any]]


class SrunStep:
    """A running srun. It yields (number of the task, event); the kind of step defines the events.

    A kind of step defines how to handle output of a task (`hear`) and a lost task (`lost`).
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        hosts: Sequence[str] | None,
        nonce: str,
        read: Callable[[bytes], Any] = protocol.event,
    ) -> None:
        self._process = process
        self.hosts = hosts
        """The node of each task, in order; None while unknown."""
        self.to_send = b""
        self._nonce = nonce
        self._decoders: defaultdict[int, Any] = defaultdict(lambda: protocol.Decoder(nonce, read))
        self._heard: defaultdict[int, int] = defaultdict(int)
        self._rest = b""
        self._errors = b""
        self._error_rest = ""
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._seconds = 0.0
        self._since = time.monotonic()
        self._start = self._since
        self.not_started = False
        """Whether a task could not be started; srun then ends all others."""
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)

    def hear(self, number: int, found: Any) -> Told:
        """Handle the decoded output of a task that has not ended. Raise UnreachableError."""
        raise NotImplementedError

    def lost(self, number: int, problem: UnreachableError) -> Told:
        """Handle a task that has ended or never began."""
        raise NotImplementedError

    def send(self, event: Mapping[str, Any]) -> None:
        """Send an event to all tasks."""
        self.to_send += protocol.encode_event(event, self._nonce)

    def hear_unlabelled(self, line: bytes) -> None:
        """Handle a line that belongs to no task."""

    def taken(self, number: int, size: int) -> None:
        """Note that a task has sent this many bytes. Raise UnreachableError if that is too much."""

    def over(self, number: int) -> None:
        """Record that a task has sent everything."""
        self._ended.add(number)
        self._decoders.pop(number, None)

    def begun(self, number: int) -> None:
        self._begun.add(number)

    def spent(self) -> float:
        return time.monotonic() - self._start

    def wait(self, seconds: float) -> None:
        """Give the tasks this much time from now."""
        self._since, self._seconds = time.monotonic(), seconds

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe]

    def events(self, seconds: float) -> Told:
        """Yield the events of the tasks until all have ended or the time is over."""
        self.wait(seconds)
        open_ones = {pipe.fileno(): pipe for pipe in self._pipes()[1:]}
        while self.hosts is None or len(self._ended) < len(self.hosts):
            left = self._since + self._seconds - time.monotonic()
            if left <= 0:
                yield from self._overdue()
                return
            if not open_ones:
                yield from self._all_gone("dropped", f"srun has ended{self.said()}")
                return
            yield from self._round(open_ones, min(left, 1.0))

    def _overdue(self) -> Told:
        """Yield the tasks that are late. A slurmd that hangs also delays the nodes that it should forward to."""
        for number in range(len(self.hosts or ())):
            text = f"its task did not finish within {self._seconds:.0f} s"
            if number not in self._begun:
                who = "is slurmd hanging there, or on a node that forwards messages (TreeWidth)?"
                text = f"its task had not begun after {self._seconds:.0f} s: {who}"
            yield from self.gone(number, "deadline", text + self.said())

    def _round(self, open_ones: dict[int, IO[bytes]], wait: float) -> Told:
        given = self._pipes()[0]
        ready, room, _ = select.select(list(open_ones), [given.fileno()] if self.to_send else [], [], wait)
        if room:
            self._send(given)
        for handle in ready:
            data = os.read(handle, CHUNK)
            if not data:
                del open_ones[handle]
            elif open_ones[handle] is self._process.stdout:
                yield from self._take(data)
            else:
                yield from self._complaint(data)

    def _send(self, given: IO[bytes]) -> None:
        try:
            self.to_send = self.to_send[os.write(given.fileno(), self.to_send[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended; what it printed says why
            self.to_send = b""

    def _take(self, data: bytes) -> Told:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[-MAX_REST:]
        for line in lines:
            found = LABELLED.match(line)
            if found is None:
                self.hear_unlabelled(line)
            elif int(found[1]) < len(self.hosts or ()) and int(found[1]) not in self._ended:
                yield from self._line(int(found[1]), found[2] + b"\n")

    def _line(self, number: int, line: bytes) -> Told:
        """Handle a line of a task. Other output comes from the node's task prolog or from Slurm itself."""
        self._heard[number] += len(line)
        if self._heard[number] > MAX_BYTES:
            yield from self.gone(number, "too much output", f"cut off after {plain_text.size(MAX_BYTES)}")
            return
        try:
            self.taken(number, len(line))
            for found in session.feed(self._decoders[number], line):
                self.begun(number)
                yield from self.hear(number, found)
        except UnreachableError as problem:
            yield from self.gone(number, problem.state, problem.message)

    def _complaint(self, data: bytes) -> Told:
        """Handle standard error of srun itself or of a task's Python."""
        self._errors = (self._errors + data)[-KEPT_ERRORS:]
        *lines, self._error_rest = (self._error_rest + data.decode("utf-8", "replace"))[-KEPT_ERRORS:].split("\n")
        for line in lines:
            found = TASK_ENDED.search(line)
            for number in cpu_list.parse_or_empty(found[1]) if found else []:
                how = plain_text.plain(found[2], 100) if found else ""
                yield from self.gone(number, *self._why(number, how))
            failed = NOT_STARTED.search(line)
            if failed and failed[1] in (self.hosts or ()):
                yield from self._never_began(failed[1], plain_text.plain(failed[2], 100))

    def _why(self, number: int, how: str) -> tuple[str, str]:
        """Return why a task ended before it reported; `how` is Slurm's text."""
        if number in self._begun or not how.startswith("Exited"):
            return "dropped", f"its task ended ({how}){self.said()}"
        return "no python", f"its task ended without output{self.said()}: is python3 (3.6 or newer) installed there?"

    def _never_began(self, host: str, how: str) -> Told:
        self.not_started = True
        number = list(self.hosts or ()).index(host)
        yield from self.gone(number, "unreachable", f"srun could not start a task there: {how}: is its slurmd running?")

    def gone(self, number: int, state: str, message: str) -> Told:
        if number not in self._ended and number < len(self.hosts or ()):
            self.over(number)
            yield from self.lost(number, UnreachableError(state, message))

    def _all_gone(self, state: str, message: str) -> Told:
        for number in range(len(self.hosts or ())):
            yield from self.gone(number, state, message)

    def said(self) -> str:
        """Return the last error message that is more than an exit status or a consequence of another error."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [line for line in lines if not TASK_ENDED.search(line) and NO_BINDING not in line]
        causes = [line for line in telling if not CONSEQUENCE.match(line)] or telling
        return f": {plain_text.plain(causes[-1], 300)}" if causes else ""

    def close(self) -> None:
        """End the step: the end of their input ends all tasks. If srun does not exit, signal it, then kill it."""
        given, *others = self._pipes()
        given.close()
        if not self._ends_within(LEAVING_SECONDS, others):
            pipes.kill(self._process, signal.SIGTERM)
            self._ends_within(URGED_SECONDS, others)
        pipes.kill(self._process)
        self._process.wait()
        for pipe in others:
            pipe.close()

    def _ends_within(self, seconds: float, others: Sequence[IO[bytes]]) -> bool:
        end = time.monotonic() + seconds
        for pipe in others:
            _drain(pipe, end)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.1, end - time.monotonic()))
        return self._process.returncode is not None


def _drain(pipe: IO[bytes], end: float) -> None:
    """Read the remaining output so that no task blocks on writing."""
    while time.monotonic() < end:
        if select.select([pipe.fileno()], [], [], 0.2)[0] and not os.read(pipe.fileno(), CHUNK):
            return


@contextmanager
def host_file(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Make a host file for srun: its path, and the handle that srun inherits.

    It is in memory, so nothing is left behind, however this process ends.
    """
    handle = os.memfd_create("nodetune-hosts")
    try:
        os.write(handle, "".join(f"{name}\n" for name in names).encode())
        yield f"/proc/self/fd/{handle}", handle
    finally:
        os.close(handle)


def start(words: Sequence[str], more: Mapping[str, str], handles: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start srun (or the command that starts it) with more environment variables and open handles. Raise OSError."""
    return pipes.start(words, handles, {**os.environ, **more})
