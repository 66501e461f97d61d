"""A session with a child process over its pipes: limited in time and size, with nothing left behind."""

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.session import Session

CHUNK = 1 << 16
FAREWELL_SECONDS = 15.0
QUIET = 0.2
"""Seconds without output after which a dead process counts as complete: a child of it may keep its pipes open."""


def converse(command: Sequence[str], session: Session, deadline: Deadline, pass_fds: Sequence[int] = ()) -> int | None:
    """Run `command` in its own process group and run the session with it. Return its exit status.

    Raise UnreachableError, and OSError when the command cannot be run.
    """
    process = start(command, pass_fds)
    deadline.on_end(lambda: kill(process, session.farewell))
    try:
        with selectors.DefaultSelector() as ready:
            _Pipes(process, session, ready).carry(deadline)
        if not session.complete:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(deadline.left(5.0))
        return None
    finally:
        _end(process, session.farewell)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        process.wait()


def start(
    command: Sequence[str], pass_fds: Sequence[int] = (), environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command in its own process group, with a pipe for each standard stream. Raise OSError."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        pass_fds=pass_fds,
        env=environment,
    )


def kill(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGKILL) -> None:
    """End a process and its group."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)


def _end(process: subprocess.Popen[bytes], farewell: signal.Signals) -> None:
    """End the process; give it time if it must end processes of its own."""
    if farewell != signal.SIGKILL and process.stdin:
        kill(process, farewell)
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(FAREWELL_SECONDS)
    kill(process)


class _Pipes:
    """The three pipes of a process and the receivers of its output."""

    def __init__(self, process: subprocess.Popen[bytes], session: Session, ready: selectors.BaseSelector) -> None:
        self._process = process
        self._session = session
        self._ready = ready
        self._input: IO[bytes] | None = process.stdin
        self._writing = False
        self._takers: dict[int, Callable[[bytes], None]] = {}
        for pipe, taker in ((process.stdout, session.output), (process.stderr, session.errors)):
            if pipe is not None:
                self._takers[pipe.fileno()] = taker
                ready.register(pipe, selectors.EVENT_READ)
        if session.wake is not None:
            ready.register(session.wake, selectors.EVENT_READ)
        for handle in (*self._takers, self._input.fileno() if self._input else 0):
            os.set_blocking(handle, False)

    def carry(self, deadline: Deadline) -> None:
        """Transfer data until the answer is complete, or the process has ended and sent everything."""
        while self._takers and not self._session.complete:
            deadline.stage = self._session.waiting_for
            self._arrange()
            over = self._process.poll() is not None  # before looking: what it printed last may come in between
            events = self._ready.select(deadline.left(QUIET if self._session.input_done else 1.0))
            for key, mask in events:
                if key.fd == self._session.wake:
                    self._session.woken()
                else:
                    self._send() if mask & selectors.EVENT_WRITE else self._take(key.fd)
            if over and not events:
                return

    def _arrange(self) -> None:
        """Watch the input only while there is data to send; close it after the last data."""
        if self._input is None:
            return
        wanted = bool(self._session.to_send)
        if wanted and not self._writing:
            self._ready.register(self._input, selectors.EVENT_WRITE)
        elif self._writing and not wanted:
            self._ready.unregister(self._input)
        self._writing = wanted
        if self._session.input_done:
            self._input.close()
            self._input = None

    def _send(self) -> None:
        if self._input is None:
            return
        try:
            self._session.sent(os.write(self._input.fileno(), self._session.to_send[:CHUNK]))
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to hear more; what it has printed says why
            self._session.sent(len(self._session.to_send))

    def _take(self, handle: int) -> None:
        try:
            data = os.read(handle, CHUNK)
        except BlockingIOError:
            return
        if data:
            self._takers[handle](data)
        else:
            self._ready.unregister(handle)
            del self._takers[handle]
