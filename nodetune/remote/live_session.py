"""A talk in both directions while a script runs: events as they come, input kept open, and what others have to say to it."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from nodetune.foundation import text
from nodetune.hosts.target import Target, UnreachableError
from nodetune.onhost import protocol
from nodetune.remote.login.session import Session

STARTER = """-c 'import os; f = os.fdopen(0, "rb", 0); exec(f.readline())'"""
"""What Python is to do: read one line, not a byte more, and run it. That line reads the rest (bundle.by_length)."""


class Mailbox:
    """What one host is to be told, from whatever thread. Everything stays in it, so that a second attempt hears it too."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._lock = threading.Lock()
        self._ends: tuple[socket.socket, socket.socket] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Open the session while somebody reads."""
        with self._lock:
            self._ends = socket.socketpair()
            for end in self._ends:
                end.setblocking(False)
        try:
            yield
        finally:
            with self._lock:
                for end in self._ends:
                    end.close()
                self._ends = None

    @property
    def wake(self) -> int | None:
        """A handle that is readable while there may be something new."""
        return self._ends[1].fileno() if self._ends else None

    def put(self, event: Any) -> None:
        with self._lock:
            self._kept.append(event)
            if self._ends:
                with suppress(BlockingIOError):  # full: whoever reads is awake already
                    self._ends[0].send(b"!")

    def after(self, number: int) -> list[Any]:
        """Return all but the first `number`. The handle is quiet until there is more."""
        with self._lock:
            with suppress(BlockingIOError):
                while self._ends and self._ends[1].recv(4096):
                    pass
            return self._kept[number:]


class LiveSession(Session):
    """Passes each event of the host to `take`; is complete with the event `end`.

    The script is read by its length on the host, so that its standard input stays open: the end of that input is how
    the host knows that nobody is interested any more.
    """

    farewell = signal.SIGTERM
    """It has processes of its own to end first. It does so as well when its input ends, as it does with an SSH connection."""

    def __init__(
        self, target: Target, script: bytes, nonce: str, most_bytes: int, mail: Mailbox, take: Callable[[Any], None]
    ) -> None:
        super().__init__(target, script, nonce, most_bytes, STARTER)
        self._decoder = protocol.Decoder(nonce, protocol.event)
        self._nonce = nonce
        self._mail = mail
        self._take = take
        self._told = 0
        self._at = ""
        self._begun = self._ended = False
        self.wake = mail.wake
        self.woken()

    @property
    def input_done(self) -> bool:
        return False

    @property
    def complete(self) -> bool:
        return self._ended

    @property
    def begun(self) -> bool:
        return self._begun

    @property
    def waiting_for(self) -> str:
        if self._begun:
            return f"measuring{f' ({self._at})' if self._at else ''}"
        return super().waiting_for.replace("the probe's answer", "the first word")

    def errors(self, data: bytes) -> None:
        super().errors(data)
        self.woken()

    def woken(self) -> None:
        """Send what is in the mailbox, once the script is on its way."""
        new = self._mail.after(self._told)
        if new and self._all_queued:
            self._told += len(new)
            self.to_send = memoryview(
                bytes(self.to_send) + b"".join(protocol.encode_event(each, self._nonce) for each in new)
            )

    def _hear(self, found: Any) -> None:
        step = found.get("step")
        if isinstance(step, dict):
            self._at = text.plain(f"{step.get('measurement')}: {step.get('text')}", 120)
        self._begun = True
        self._ended = self._ended or "end" in found
        self._take(found)

    def answer(self, status: int | None) -> None:
        """Return nothing, because everything was sent before. Raise UnreachableError if it ended too early."""
        if self._ended:
            return
        if self._begun:
            raise UnreachableError("dropped", f"the connection ended while {self.waiting_for}{self._said()}")
        raise self._failure(status)
