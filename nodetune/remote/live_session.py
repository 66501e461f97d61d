"""A session in both directions while a script runs: events on arrival, and an input that stays open for messages."""

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
"""Python's program: read one line and not a byte more, and run it. That line reads the rest (login/script.py)."""


class Mailbox:
    """Messages for one host from any thread. They stay in the mailbox so that a second attempt receives them too."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._lock = threading.Lock()
        self._ends: tuple[socket.socket, socket.socket] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep the mailbox open while a session reads it."""
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
        """A handle that is readable while there may be new messages."""
        return self._ends[1].fileno() if self._ends else None

    def put(self, event: Any) -> None:
        with self._lock:
            self._kept.append(event)
            if self._ends:
                with suppress(BlockingIOError):  # full: whoever reads is awake already
                    self._ends[0].send(b"!")

    def after(self, number: int) -> list[Any]:
        """Return all messages but the first `number`. Reset the handle until there are more."""
        with self._lock:
            with suppress(BlockingIOError):
                while self._ends and self._ends[1].recv(4096):
                    pass
            return self._kept[number:]


class LiveSession(Session):
    """Passes each event of the host to `take`; the event `end` completes the session.

    The host reads the script by its length so that its standard input stays open: the end of that input makes the host
    stop.
    """

    farewell = signal.SIGTERM
    """The program must end its own processes first. It also does so when its input ends, as with an SSH connection."""

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
        return super().waiting_for.replace("the probe's answer", "the first event")

    def errors(self, data: bytes) -> None:
        super().errors(data)
        self.woken()

    def woken(self) -> None:
        """Send the content of the mailbox once the script is queued."""
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
        """Return nothing: all events have been passed on. Raise UnreachableError if the session ended too early."""
        if self._ended:
            return
        if self._begun:
            raise UnreachableError("dropped", f"the connection ended while {self.waiting_for}{self._said()}")
        raise self._failure(status)
