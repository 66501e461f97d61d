"""Ask the RAS service of a running NCCL job (NCCL 2.24 and newer; src/ras/client_support.cc).

It listens on localhost, port 28028, and speaks lines: `CLIENT PROTOCOL n` → `SERVER PROTOCOL n`, `TIMEOUT s` → `OK`,
`SET FORMAT json` → `OK` (2.28.7 and newer) or `ERROR: …`, `VERBOSE STATUS` → the answer, after which it closes the connection.
All processes of the job on the node listen on this port, and the kernel picks one for each connection. One that is stopped
stays silent; the next connection reaches another. What answers may be anything: its size and time are bounded.
"""

import socket
import time
from contextlib import closing

from nodetune.foundation import text

PROTOCOL = 2
COLLECT = 10
"""Seconds that the job may take to ask its own processes. NCCL's default is 5."""

CONNECT, GREETING, STEP, MAX_SECONDS = 5.0, 2.0, 2 * COLLECT + 1.0, 60.0
ATTEMPTS = 16
"""Connections until a process answers. With four of eight stopped, all of them miss once in 65,536 times."""

LINE, MAX_BYTES = 4096, 64 << 20
"""JSON has 0.6 KB for each rank of each communicator: 1,000 ranks in 100 communicators of all of them."""


class RasError(Exception):
    """Why nothing usable came."""


class SilentError(RasError):
    """The process that was reached says nothing."""


class Connection:
    """One connection, which answers one question."""

    def __init__(self, host: str, port: int, end: float) -> None:
        self._end, self._step = end, GREETING
        self._buffer = b""
        try:
            self._socket = socket.create_connection((host, port), CONNECT)
        except (OSError, UnicodeError) as problem:
            raise RasError(_words(problem)) from None

    def close(self) -> None:
        self._socket.close()

    def command(self, words: str) -> str:
        """Send a line and return the line that comes back."""
        self._send(words)
        while b"\n" not in self._buffer:
            if len(self._buffer) > LINE or not (got := self._received()):
                raise RasError("what answers is not NCCL's RAS service")
            self._buffer += got
        self._step = STEP
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def all_of(self, words: str) -> str:
        """Send a line and return everything until the other side closes."""
        self._send(words)
        parts, size = [self._buffer], len(self._buffer)
        while got := self._received():
            parts.append(got)
            size += len(got)
            if size > MAX_BYTES:
                raise RasError(f"the answer is larger than {text.size(MAX_BYTES)}")
        return b"".join(parts).decode("utf-8", "replace")

    def _send(self, words: str) -> None:
        self._bound()
        try:
            self._socket.sendall(words.encode() + b"\n")
        except OSError as problem:
            raise RasError(_words(problem)) from None

    def _received(self) -> bytes:
        self._bound()
        try:
            return self._socket.recv(1 << 16)
        except TimeoutError:
            raise SilentError("no answer in time") from None
        except OSError as problem:
            raise RasError(_words(problem)) from None

    def _bound(self) -> None:
        """Bound the next step by what is left of the time. Raise NoAnswerError."""
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise RasError(f"no complete answer within {MAX_SECONDS:g} s")
        self._socket.settimeout(min(remaining, self._step))


def ask(host: str, port: int) -> str:
    """Return the status of the job: JSON where its NCCL has it, else text. Raise NoAnswerError."""
    end = time.monotonic() + MAX_SECONDS
    for _ in range(ATTEMPTS):
        with closing(Connection(host, port, end)) as connection:
            try:
                greeting = connection.command(f"CLIENT PROTOCOL {PROTOCOL}")
            except SilentError:
                continue
            if not greeting.upper().startswith("SERVER PROTOCOL "):
                raise RasError("what answers is not NCCL's RAS service")
            connection.command(f"TIMEOUT {COLLECT}")
            connection.command("SET FORMAT json")  # an error: NCCL before 2.28.7, which continues in text
            return connection.all_of("VERBOSE STATUS")
    raise RasError("it accepts connections and says nothing: the processes that listen there are stopped")


def _words(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "no answer in time"
    return text.plain(getattr(problem, "strerror", None) or problem).lower()
