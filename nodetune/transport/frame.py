"""Finds the probe's framed answer in whatever a host printed. Trusts nothing: sizes are bounded before unpacking."""

from __future__ import annotations

import re
import zlib
from typing import Any

from nodetune import factfile, show
from nodetune.transport import Unreachable

MOST_UNPACKED = 64 << 20


def answer(output: bytes, nonce: str) -> Any:
    """The document inside `output`. Raises Unreachable (no python, bad answer)."""
    found = re.search(rb"<<nodetune " + nonce.encode("ascii") + rb" (old )?([0-9.]{1,12})(?: ([0-9a-f]{8}))?>>\n", output)
    if found is None:
        raise Unreachable("bad answer", _no_frame(output))
    if found[1]:
        raise Unreachable("no python", f"python3 there is Python {found[2].decode()}: 3.6 or newer is needed")
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


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, MOST_UNPACKED)
    except zlib.error:
        raise Unreachable("bad answer", "the answer cannot be unpacked") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise Unreachable("too much output", f"the answer unpacks to more than {show.size(MOST_UNPACKED)}")
    return data


def _no_frame(output: bytes) -> str:
    if not output.strip():
        return "the host printed nothing"
    return f"no probe answer in its output, which begins: {show.plain(output[:120].decode('utf-8', 'replace').strip(), 120)}"
