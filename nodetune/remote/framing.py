"""Read what a host says in the line protocol, and tell in words why a host said nothing that can be read."""

from __future__ import annotations

from typing import Any

from nodetune.foundation import text
from nodetune.hosts.target import UnreachableError
from nodetune.onhost import protocol


def feed(decoder: protocol.Decoder, data: bytes) -> list[Any]:
    """Return what is complete now. Raises Unreachable (no python, bad answer, too much output)."""
    try:
        found: list[Any] = decoder.feed(data)
    except protocol.TooMuchError as problem:
        raise UnreachableError("too much output", f"a line of the answer is refused: {problem}") from None
    except protocol.LineError as problem:
        raise UnreachableError("bad answer", f"a line of the answer is damaged: {problem}") from None
    if decoder.old:
        raise UnreachableError("no python", f"python3 there is Python {decoder.old}: 3.6 or newer is needed")
    return found


def no_answer(output: bytes) -> str:
    """Describe output that contains no answer."""
    if not output.strip():
        return "the host printed nothing"
    begin = output[:120].decode("utf-8", "replace").strip()
    return f"no probe answer in its output, which begins: {text.plain(begin, 120)}"
