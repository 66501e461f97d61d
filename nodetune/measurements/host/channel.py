"""A host's end of the connection to its controller (nodetune/onhost/protocol.py defines its content)."""

import os
import time

from nodetune.onhost import protocol

DRAIN_SECONDS = 20.0
MAX_WAITING = 16 << 20


class StoppedError(Exception):
    """The controller is gone."""


class Channel:
    """A host's end: sends events as the pipe has space, and receives messages. The run ends with the connection."""

    def __init__(self, nonce, source=0, sink=1):
        self._decoder = protocol.Decoder(nonce, protocol.event)
        self._nonce = nonce
        self._source = source
        self._sink = sink
        self._waiting = b""
        os.set_blocking(sink, False)

    def say(self, event):
        self._waiting += protocol.encode_event(event, self._nonce)
        self._write()
        if len(self._waiting) > MAX_WAITING:
            raise StoppedError("the controller reads nothing")

    def handles(self):
        """Return (handles to wait for input, handles to wait for space)."""
        return [self._source], [self._sink] if self._waiting else []

    def served(self, readable, writable):
        """Transfer what is ready. Return what was received; raise StoppedError."""
        if self._sink in writable:
            self._write()
        if self._source not in readable:
            return []
        data = os.read(self._source, 1 << 16)
        if not data:
            raise StoppedError("the connection has ended")
        return self._decoder.feed(data)

    def drain(self):
        """Write the rest, as long as it is read."""
        end = time.monotonic() + DRAIN_SECONDS
        while self._waiting and time.monotonic() < end:
            self._write()
            time.sleep(0.01)

    def _write(self):
        try:
            while self._waiting:
                self._waiting = self._waiting[os.write(self._sink, self._waiting[: 1 << 16]) :]
        except BlockingIOError:
            pass
        except OSError:
            raise StoppedError("the connection has ended")
