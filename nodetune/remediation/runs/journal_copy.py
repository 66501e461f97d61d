"""The controller's copy of a host's journal, and whether it is whole."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from nodetune.facts import document
from nodetune.foundation import text


class Seal:
    """The number of entries of a copy and the checksum of its bytes, as the record keeps them."""

    def __init__(self) -> None:
        self._entries, self._sum = 0, hashlib.sha256()

    def add(self, lines: str) -> None:
        self._entries += lines.count("\n")
        self._sum.update(lines.encode("utf-8", "backslashreplace"))

    @property
    def data(self) -> list[Any]:
        return [self._entries, self._sum.hexdigest()]


class JournalCopy(NamedTuple):
    """The entries that can be read, how many the host's own journal has at least, and what is damaged, or ""."""

    entries: list[dict[str, Any]]
    least: int
    damage: str


def read(path: Path, seal: Any, changed: bool) -> JournalCopy:
    """Read a copy. `seal`: `Seal.data`, None in records of killed runs and of older versions. `changed`: the run changed the host."""
    why, data = "is gone", b""
    try:
        data = path.read_bytes()
        why = "is damaged" if data else "is empty"
    except FileNotFoundError:
        pass
    except OSError as problem:
        why, changed = f"cannot be read: {(problem.strerror or str(problem)).lower()}", True
    lines = data.split(b"\n")[:-1]  # the last is empty, or not whole
    entries = [entry for entry in map(_entry, lines) if entry is not None]
    least, whole = len(lines), len(entries) == len(lines) and bool(lines or not changed)
    if seal is not None:
        sealed = isinstance(seal, list) and len(seal) == 2 and type(seal[0]) is int
        least = seal[0] if sealed else least
        sealed_part = b"".join(line + b"\n" for line in lines[:least])
        whole = whole and sealed and seal[1] == hashlib.sha256(sealed_part).hexdigest()
    if whole:
        return JournalCopy(entries, least, "")
    least = max(1, least)
    had = f" (entries in it: {least} at the end of the run, {len(entries)} now)" if seal is not None else ""
    return JournalCopy(entries, least, f"{text.plain(path)} {why}{had}")


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = document.parse(line, "")
    except document.FactsError:
        return None
    return found if isinstance(found, dict) else None
