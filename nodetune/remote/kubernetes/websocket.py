"""A websocket with the channels of `kubectl exec` (v5.channel.k8s.io): standard input, output, errors and the end status."""

import base64
import hashlib
import os
import re
import select
import ssl
import struct
from collections.abc import Iterator

from nodetune.foundation import text as plain_text

STDIN, STDOUT, STDERR, STATUS = 0, 1, 2, 3
PROTOCOL = "v5.channel.k8s.io"
"""The first one in which standard input can be closed. API servers have it from 1.30 on."""

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""A constant of the websocket protocol (RFC 6455)."""

CHUNK = 1 << 15
MAX_HEADER_BYTES = 1 << 16
MAX_FRAME = 1 << 20
CONTINUED, CLOSING, PING, PONG = 0, 8, 9, 10


class RefusedError(Exception):
    """The server answered with something other than a websocket: `status` and the text of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class FrameError(OSError):
    """Something that is not a frame, or too large for one."""


class Channels:
    """The client's side. Blocking; the time limits are those of the socket. All raise OSError."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._socket = connection
        self._buffer = b""
        self._channel = STATUS
        self.closed = False

    def open(self, host: str, path: str, headers: dict[str, str]) -> None:
        """Ask for the websocket. Raise RefusedError if the server says no."""
        key = base64.b64encode(os.urandom(16)).decode()
        wanted = {
            "Host": host,
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Protocol": PROTOCOL,
            **headers,
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in wanted.items())]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        while b"\r\n\r\n" not in self._buffer:
            self._more(MAX_HEADER_BYTES)
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        text = head.decode("latin-1")
        status = re.match(r"HTTP/1\.[01] (\d{3})", text)
        if status is None:
            raise FrameError("the answer is not HTTP")
        if status[1] != "101":
            raise RefusedError(int(status[1]), self._refusal(text))
        accepted = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()  # noqa: S324  (the protocol says so)
        if _header(text, "Sec-WebSocket-Accept") != accepted:
            raise FrameError("the answer does not belong to this websocket")
        if _header(text, "Sec-WebSocket-Protocol") != PROTOCOL:
            raise RefusedError(101, f"it does not know {PROTOCOL}: Kubernetes 1.30 or newer is needed")

    def _refusal(self, head: str) -> str:
        """Return the text of an answer that says no."""
        length = plain_text.whole(_header(head, "Content-Length"))
        size = MAX_HEADER_BYTES if length is None else min(length, MAX_HEADER_BYTES)
        try:
            while len(self._buffer) < size and not self._buffer.endswith(b"\r\n0\r\n\r\n"):
                self._more(MAX_HEADER_BYTES + CHUNK)
        except OSError:
            pass  # a server that ends its answer with the connection
        return self._buffer.decode("utf-8", "replace")

    def send(self, data: bytes | memoryview) -> None:
        """Send a part of standard input."""
        self._frame(bytes([STDIN]) + data)

    def _frame(self, data: bytes, kind: int = 2) -> None:
        size = len(data)
        length = struct.pack("!B", 0x80 | size) if size < 126 else struct.pack("!BH", 0x80 | 126, size)
        mask = os.urandom(4)
        key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        masked = (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")
        self._socket.sendall(bytes([0x80 | kind]) + length + mask + masked)

    def waiting(self) -> bool:
        """Return whether there is something to receive now."""
        if self._buffer or self._socket.pending():
            return True
        ready = select.poll()  # select() knows only small numbers of files
        ready.register(self._socket, select.POLLIN)
        return bool(ready.poll(0))

    def receive(self) -> Iterator[tuple[int, bytes]]:
        """Wait for one frame, and yield its channel and content if it has one. Sets `closed` at the end."""
        kind, size = self._read(2)
        last, kind, size = kind & 0x80, kind & 15, size & 127
        if size > 125:
            form = "!H" if size == 126 else "!Q"
            size = struct.unpack(form, self._read(struct.calcsize(form)))[0]
        if size > MAX_FRAME:
            raise FrameError(f"a frame of {size} bytes")
        data = self._read(size)
        if kind == CLOSING:
            self.closed = True
        elif kind == PING:
            self._frame(data[:125], PONG)
        elif kind < CLOSING and data:
            if kind != CONTINUED:
                self._channel, data = data[0], data[1:]
            if data:
                yield self._channel, data
        elif kind not in (PONG, CONTINUED, 1, 2) or not last:
            raise FrameError("an unknown frame")

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more(MAX_FRAME + CHUNK)
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _more(self, most: int) -> None:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the connection ended")
        self._buffer += data
        if len(self._buffer) > most:
            raise FrameError("too much at once")


def _header(head: str, name: str) -> str:
    found = re.search(rf"^{name}:[ \t]*(.*?)[ \t]*\r?$", head, re.IGNORECASE | re.MULTILINE)
    return found[1] if found else ""
