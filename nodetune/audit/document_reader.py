"""Reads an audit document (schema nodetune.audit/1) as document.write_audit writes it, host by host: thousands take gigabytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from nodetune.facts import document

BLOCK = 1 << 20
MAX_BYTES = 64 << 20
"""Of what there is of one host: a file with more between two hosts is laid out in another way."""

CONCLUDED = b',\n "conclusions": ['
ENDING = b"]\n}\n"
HOSTS, HOST, END = b'\n "hosts": [\n  {', b"\n  },\n  {", b'\n  }\n ],\n "fleet": '
FINDINGS, FINDING, LAST = b'\n   "findings": [\n    {', b"\n    },\n    {", b"\n    }\n   ]"
"""The separators between the parts with their line breaks, which no text in JSON can contain."""

Known = dict[bytes, Any]


def read(path: Path, known: Known) -> dict[str, Any] | None:
    """Read the document with equal findings as one object; return None if the layout is different.

    `known` collects the findings: pass it again for another file, and equal findings of both are one object. Raise
    OSError.
    """
    with path.open("rb") as stream:
        try:
            return _document(_pieces(stream), known)
        except ValueError:
            return None  # whoever reads it as a whole says what is wrong with it, if anything


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the file, cut between hosts."""
    rest = b""
    while block := stream.read(BLOCK):
        before, concluded, _ = (rest + block).partition(CONCLUDED)  # who reads hosts does not need them
        *whole, rest = before.split(HOST)
        if concluded:
            yield from whole
            yield rest + b"\n}\n"
            _expect_end(stream, block)
            return
        yield from whole
        if len(rest) > MAX_BYTES:
            raise ValueError("unknown layout")
    yield rest


def _expect_end(stream: IO[bytes], block: bytes) -> None:
    """Raise ValueError if a document is cut off, or if something follows its end."""
    last = block
    while block := stream.read(BLOCK):
        last = (last + block)[-max(BLOCK, len(ENDING)) :]
    if not last.endswith(ENDING):
        raise ValueError("cut off")


def _document(pieces: Iterator[bytes], known: Known) -> dict[str, Any]:
    head, found, host = next(pieces).partition(HOSTS)
    if not found:
        raise ValueError("no hosts")
    hosts = []
    for following in pieces:
        hosts.append(_host(host, known))
        host = following
    host, _, tail = host.partition(END)
    hosts.append(_host(host, known))
    return {**_parsed(head + b' "hosts": 0}'), "hosts": hosts, **_parsed(b'{"fleet": ' + tail)}


def _host(text: bytes, known: Known) -> dict[str, Any]:
    """Parse a host from its text without the braces."""
    about, found, findings = text.partition(FINDINGS)
    if not found:
        return _parsed(b"{" + text + b"}")
    if not findings.endswith(LAST):
        raise ValueError("unexpected data after the findings")
    pieces = findings[: -len(LAST)].split(FINDING)
    return {**_parsed(b"{" + about + b' "findings": 0}'), "findings": [_finding(each, known) for each in pieces]}


def _finding(text: bytes, known: Known) -> dict[str, Any]:
    found: dict[str, Any] | None = known.get(text)
    if found is None:
        found = known[text] = _parsed(b"{" + text + b"}")
    return found


def _parsed(text: bytes) -> dict[str, Any]:
    """Parse JSON. Raise document.FactsError."""
    data: dict[str, Any] = document.parse(text, "here")
    return data
