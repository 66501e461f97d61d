"""What a tuning has measured so far: one JSON line a trial, on disk before the next one begins."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nodetune.tune.model import Setting, Trial

LONGEST = 64 << 20
"""Bytes that are read of a journal."""


class JournalError(Exception):
    """A journal cannot be written, read or continued. The message says where and what to do."""


class Journal:
    """A journal file. `known` are the trials of an earlier run, in their order; `header` says what they are trials of."""

    def __init__(self, path: Path, header: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self.known: list[Trial] = []
        self._handle = _opened(path, resume=resume)
        try:
            self._begin(json.loads(json.dumps(header)), resume=resume)
        except BaseException:
            self.close()
            raise

    def append(self, trial: Trial) -> None:
        """Write one trial. Raise JournalError."""
        self._write(asdict(trial))

    def close(self) -> None:
        os.close(self._handle)

    def _begin(self, header: Any, *, resume: bool) -> None:
        if not resume:
            self._write(header)
            return
        lines, whole = _read(self._handle)
        if not lines:
            raise JournalError(f"{self.path}: holds no trial: start without --resume")
        differing = sorted(key for key in {*lines[0], *header} if lines[0].get(key) != header.get(key))
        if differing:
            raise JournalError(
                f"{self.path}: its trials are of something else ({', '.join(differing)} differ): "
                "start without --resume, with another --journal"
            )
        try:
            self.known = [_trial(line) for line in lines[1:]]
        except (KeyError, TypeError, ValueError):
            raise JournalError(f"{self.path}: is no journal of trials: start without --resume") from None
        os.ftruncate(self._handle, whole)
        os.lseek(self._handle, whole, os.SEEK_SET)

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            left = (json.dumps(line) + "\n").encode("utf-8")
            while left:
                left = left[os.write(self._handle, left) :]
            os.fsync(self._handle)
        except OSError as problem:
            raise JournalError(f"{self.path}: {(problem.strerror or str(problem)).lower()}") from None


def _opened(path: Path, *, resume: bool) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | (0 if resume else os.O_CREAT | os.O_EXCL), 0o644)
    except FileExistsError:
        raise JournalError(f"{path}: exists: continue it with --resume, or name another --journal") from None
    except OSError as problem:
        raise JournalError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise JournalError(f"{path}: another tuning writes it") from None
    return handle


def _read(handle: int) -> tuple[list[dict[str, Any]], int]:
    """Return the whole lines, and how many bytes they take: a killed run may have left half a line."""
    with open(handle, "rb", closefd=False) as file:
        content = file.read(LONGEST)
    lines: list[dict[str, Any]] = []
    size = 0
    for line in content.splitlines(keepends=True):
        try:
            found = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n") or not isinstance(found, dict):
            break
        lines.append(found)
        size += len(line)
    return lines, size


def _trial(line: Mapping[str, Any]) -> Trial:
    setting: Setting = tuple((str(name), value) for name, value in line["setting"])
    values = {str(name): float(value) for name, value in line["values"].items()}
    return Trial(**{**line, "setting": setting, "values": values})
