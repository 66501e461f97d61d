"""Finds the probe's framed answer in whatever a host printed. Trusts nothing: sizes are bounded before unpacking."""

from __future__ import annotations

import re
import zlib

from nodetune import show
from nodetune.transport import Unreachable

MOST_UNPACKED = 16 << 20
"""A hundred times what a host with eight GPUs has to say."""

MOST_PARTS = 500_000
"""Of a JSON text: an empty list in it takes two bytes there and thirty times as many here."""

_LONGEST_HEAD = 64
_REST = re.compile(rb"(old )?([0-9.]{1,12})(?: ([0-9a-f]{8}))?>>\n")


class Watch:
    """Looks for the answer while it arrives, so that nobody waits for what comes after it."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._looked = 0
        self._needed = 0
        self.found = False
        self.complete = False

    def look(self, output: bytearray) -> None:
        """Look at all the output so far."""
        if not self.found:
            head = _search(output, self._nonce, self._looked)
            self._looked = max(0, len(output) - _LONGEST_HEAD)
            if head is None:
                return
            self.found = True
            self._needed = head.end() + (int(head[2]) if head[2].isdigit() else 0)
        self.complete = len(output) >= self._needed


def _search(output: bytes | bytearray, nonce: str, start: int = 0) -> re.Match[bytes] | None:
    """The line before the answer: (old, size or version, checksum)."""
    mark = f"<<nodetune {nonce} ".encode("ascii")
    at = output.find(mark, start)
    while at >= 0:
        head = _REST.match(output, at + len(mark))
        if head:
            return head
        at = output.find(mark, at + 1)
    return None


def answer(output: bytes, nonce: str) -> bytes:
    """The text of the document inside `output`. Raises Unreachable (no python, bad answer, dropped, too much output)."""
    found = _search(output, nonce)
    if found is None:
        raise Unreachable("bad answer", no_answer(output))
    if found[1]:
        raise too_old(found[2].decode())
    size = int(found[2]) if found[2].isdigit() else -1
    packed = output[found.end() : found.end() + max(size, 0)]
    if found[3] is None or len(packed) != size:
        raise Unreachable("dropped", f"the answer ended after {len(packed)} of {size} bytes")
    if zlib.crc32(packed) != int(found[3], 16):
        raise Unreachable("bad answer", "the answer was damaged on the way (checksum)")
    return _unpacked(packed)


def too_old(version: str) -> Unreachable:
    return Unreachable("no python", f"python3 there is Python {version}: 3.6 or newer is needed")


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, MOST_UNPACKED)
    except zlib.error:
        raise Unreachable("bad answer", "the answer cannot be unpacked") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise Unreachable("too much output", f"the answer unpacks to more than {show.size(MOST_UNPACKED)}")
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_PARTS:
        raise Unreachable("too much output", f"the answer holds more than {MOST_PARTS} values")
    return data


def no_answer(output: bytes | bytearray) -> str:
    """What to say of output without an answer in it."""
    if not output.strip():
        return "the host printed nothing"
    begin = bytes(output[:120]).decode("utf-8", "replace").strip()
    return f"no probe answer in its output, which begins: {show.plain(begin, 120)}"
