"""The trials of a tuning so far: one JSON line for each, on disk before the next trial starts."""

import fcntl
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nodetune.onhost import files
from nodetune.tune.model import Choice, Setting, Trial

MAX_BYTES = 64 << 20
"""Limit for the bytes that are read from a journal."""


class JournalError(Exception):
    """A journal cannot be written, read or resumed. The message says where and what to do."""


class Journal:
    """A journal file. `known` are the trials of an earlier run, in order; `header` identifies the tuning."""

    def __init__(self, path: Path, header: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self.known: list[Trial] = []
        self._ends: list[int] = []
        """The offset of the end of each line: the header, then each trial."""
        self._handle = _opened(path, resume=resume)
        try:
            self._continue(json.loads(json.dumps(header))) if resume else self._write(header)
        except BaseException:
            self.close()
            if not resume:
                path.unlink(missing_ok=True)
            raise

    def append(self, place: int, trial: Trial) -> None:
        """Write the trial after the first `place` trials; remove later ones. Raise JournalError."""
        del self._ends[1 + place :]
        self._write(asdict(trial))

    @property
    def count(self) -> int:
        """Return the number of trials."""
        return len(self._ends) - 1

    def close(self) -> None:
        os.close(self._handle)

    def _continue(self, header: Any) -> None:
        lines, self._ends = _read(self._handle)
        if not lines:
            raise JournalError(f"{self.path}: has no trials: delete it and start without --resume")
        differing = sorted(key for key in {*lines[0], *header} if lines[0].get(key) != header.get(key))
        if differing:
            raise JournalError(
                f"{self.path}: its trials belong to another tuning ({', '.join(differing)} differ): start without "
                "--resume and with another --save"
            )
        try:
            self.known = [_trial(line) for line in lines[1:]]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise JournalError(f"{self.path}: not a journal of trials: start without --resume") from None
        while self.known and (self.known[-1].failed or self.known[-1].disturbed):
            self.known.pop()  # what ended it is tried again

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            data = (json.dumps(line) + "\n").encode("utf-8")
            start = self._ends[-1] if self._ends else 0
            self._ends.append(start + len(data))
            os.ftruncate(self._handle, start)
            os.lseek(self._handle, start, os.SEEK_SET)
            files.write_all(self._handle, data)
            os.fsync(self._handle)
        except OSError as problem:
            raise JournalError(f"{self.path}: {(problem.strerror or str(problem)).lower()}") from None


def _opened(path: Path, *, resume: bool) -> int:
    try:
        if resume and path.exists() and not path.is_file():  # a pipe would be waited for
            raise JournalError(f"{path}: not a file: give the file of an interrupted tuning")
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | (0 if resume else os.O_CREAT | os.O_EXCL), 0o644)
    except FileExistsError:
        raise JournalError(f"{path}: exists: continue it with --resume, or give another file with --save") from None
    except OSError as problem:
        raise JournalError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise JournalError(f"{path}: in use by another tuning") from None
    return handle


def _read(handle: int) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the complete lines and the offsets of their ends: a killed run may have left half a line."""
    with open(handle, "rb", closefd=False) as file:
        content = file.read(MAX_BYTES)
    lines: list[dict[str, Any]] = []
    ends: list[int] = []
    for line in content.splitlines(keepends=True):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not line.endswith(b"\n") or not isinstance(data, dict):
            break
        lines.append(data)
        ends.append((ends[-1] if ends else 0) + len(line))
    return lines, ends


def _trial(line: Mapping[str, Any]) -> Trial:
    """Return the trial of a line. Raise KeyError, TypeError, ValueError or AttributeError."""
    setting: Setting = tuple((str(name), _choice(value)) for name, value in line["setting"])
    values = {str(name): float(value) for name, value in line["values"].items()}
    seconds = float(line["seconds"])
    if not 0 <= seconds < math.inf:
        raise ValueError
    texts = {name: str(line[name]) for name in ("banned", "failed", "disturbed")}
    return Trial(setting, values, about=dict(line["about"]), seconds=seconds, **texts)


def _choice(value: Any) -> Choice:
    if not isinstance(value, str | int | float):
        raise TypeError
    return value
