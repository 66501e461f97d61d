"""A conversation with a child process over its pipes: bounded in time and size, and nothing of it left behind."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

from nodetune.transport.lifeline import Lifeline
from nodetune.transport.talk import Talk

CHUNK = 1 << 16
QUIET = 0.2
"""Seconds without output after which a process that has ended is not waited for: a child of it may hold its pipes."""


def converse(command: Sequence[str], talk: Talk, life: Lifeline, pass_fds: Sequence[int] = ()) -> int | None:
    """Run `command` in a process group of its own, and hold the talk with it. Returns its exit status.

    Raises Unreachable, and OSError when the command cannot be run.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    life.on_end(lambda: kill(process))
    try:
        _talk(process, talk, life)
        return process.wait() if process.poll() is not None else None
    finally:
        kill(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _talk(process: subprocess.Popen[bytes], talk: Talk, life: Lifeline) -> None:
    """Until the answer is complete, or the process has ended and said all."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise AssertionError("opened with pipes")
    for pipe in (stdin, stdout, stderr):
        os.set_blocking(pipe.fileno(), False)
    takers: dict[int, Callable[[bytes], None]] = {stdout.fileno(): talk.output, stderr.fileno(): talk.errors}
    writing = False
    with selectors.DefaultSelector() as ready:
        for handle in takers:
            ready.register(handle, selectors.EVENT_READ)
        while takers and not talk.complete:
            life.stage = talk.waiting_for
            if not stdin.closed:
                writing = _arrange(ready, stdin.fileno(), writing, bool(talk.to_send))
                if talk.input_done:
                    stdin.close()
            events = ready.select(life.left(QUIET if talk.input_done else 1.0))
            for key, mask in events:
                if mask & selectors.EVENT_WRITE:
                    _send(stdin.fileno(), talk)
                elif not _take(key.fd, takers):
                    ready.unregister(key.fd)
                    del takers[key.fd]
            if not events and process.poll() is not None:
                return
    with suppress(subprocess.TimeoutExpired):
        if not talk.complete:
            process.wait(life.left(5.0))


def _arrange(ready: selectors.BaseSelector, handle: int, writing: bool, wanted: bool) -> bool:
    """Watch the input only while there is something to send."""
    if wanted and not writing:
        ready.register(handle, selectors.EVENT_WRITE)
    elif writing and not wanted:
        ready.unregister(handle)
    return wanted


def _send(handle: int, talk: Talk) -> None:
    try:
        talk.sent(os.write(handle, talk.to_send[:CHUNK]))
    except BlockingIOError:
        return
    except BrokenPipeError:
        talk.sent(len(talk.to_send))  # it does not want to hear more; what it has printed says why


def _take(handle: int, takers: dict[int, Callable[[bytes], None]]) -> bool:
    """False at the end of that stream."""
    try:
        data = os.read(handle, CHUNK)
    except BlockingIOError:
        return True
    if data:
        takers[handle](data)
    return bool(data)
