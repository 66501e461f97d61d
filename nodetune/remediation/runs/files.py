"""Files of a record: written whole or by whole lines, closed to others, and read with suspicion."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nodetune.facts import document
from nodetune.foundation import UserError
from nodetune.foundation.exit_codes import END_STATE_MISSED
from nodetune.onhost import files


class RunError(UserError):
    """A run that is not there, or whose record cannot be used."""


class DamageError(RunError):
    """A record that is damaged, so that what its run did is unknown."""

    code = END_STATE_MISSED


def as_json(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"


def as_lines(items: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def write(path: Path, text: str) -> None:
    """Write a file whole, and onto the disk."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        append(partial, text, sync=True, fresh=True)
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def append(path: Path, text: str, sync: bool = False, fresh: bool = False) -> None:
    """Add to a file, all or nothing; with `sync` it is on the disk afterwards."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if fresh else 0)
    file = os.open(path, how, 0o600)
    try:
        files.append(file, text.encode("utf-8", "backslashreplace"), sync)
    finally:
        os.close(file)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path: Path) -> Any:
    try:
        return document.parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except (OSError, document.FactsError) as problem:
        raise DamageError(f"{path}: {problem.strerror}" if isinstance(problem, OSError) else str(problem)) from None


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, one a line. Raise DamageError."""
    try:
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], 1):  # the last is empty, or not whole
            found = document.parse(line, f"{path} line {number}")
            if isinstance(found, dict):
                yield found
    except FileNotFoundError:
        return
    except OSError as problem:
        raise DamageError(f"{path}: {problem.strerror}") from None
    except document.FactsError as problem:
        raise DamageError(str(problem)) from None
