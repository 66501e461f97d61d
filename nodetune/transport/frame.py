"""Finds the probe's framed answer in whatever a host printed. Trusts nothing: sizes are bounded before unpacking."""

from __future__ import annotations

import re
import zlib
from typing import Any

from nodetune import factfile, show
from nodetune.transport import Unreachable

MOST_UNPACKED = 32 << 20
MOST_PARTS = 2_000_000
"""Of a JSON text: an empty list in it takes two bytes there and twenty times as many here."""

_LONGEST_HEAD = 64


def _head(nonce: str) -> re.Pattern[bytes]:
    return re.compile(rb"<<nodetune " + nonce.encode("ascii") + rb" (old )?([0-9.]{1,12})(?: ([0-9a-f]{8}))?>>\n")


class Watch:
    """Looks for the answer while it arrives, so that nobody waits for what comes after it."""

    def __init__(self, nonce: str) -> None:
        self._pattern = _head(nonce)
        self._looked = 0
        self._needed = 0
        self.found = False
        self.complete = False

    def look(self, output: bytearray) -> None:
        """Look at all the output so far."""
        if not self.found:
            head = self._pattern.search(output, self._looked)
            self._looked = max(0, len(output) - _LONGEST_HEAD)
            if head is None:
                return
            self.found = True
            self._needed = head.end() + (int(head[2]) if head[2].isdigit() else 0)
        self.complete = len(output) >= self._needed


def answer(output: bytes, nonce: str) -> Any:
    """The document inside `output`. Raises Unreachable (no python, bad answer, dropped, too much output)."""
    found = _head(nonce).search(output)
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
    try:
        return factfile.parse(_unpacked(packed), "the probe's answer")
    except factfile.BadFacts as problem:
        raise Unreachable("bad answer", str(problem)) from None


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
