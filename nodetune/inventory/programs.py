"""Programs that an inventory runs: waited for where a person sees it, given up after a while, heard when they fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nodetune import show

LONGEST = 300.0
"""Seconds that one call may take: a cloud with many machines is slow, and Ansible itself would wait for ever."""

SILENT = 3.0
"""Seconds after which a person at a terminal is told what is waited for."""

LEAVING = 2.0
"""Seconds between asking a program to end and killing it."""


class Watch:
    """What became of the programs of one inventory: the last line that they said, and why one was given up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last_words = ""
        self.given_up = ""


@contextmanager
def watched(name: str) -> Iterator[Watch]:
    """Watch the programs that Ansible runs meanwhile, for which it has no time limit and whose complaints it drops."""
    watch = Watch(name)

    class Watched(subprocess.Popen[Any]):
        def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:  # noqa: A002
            try:
                out, errors = super().communicate(input, SILENT if timeout is None else timeout)
            except subprocess.TimeoutExpired:
                if timeout is not None:
                    raise
                with _telling(f"waiting for the inventory {name} (at most {LONGEST:g} s)"):
                    out, errors = self._rest()
            watch.last_words = _last_line(errors)
            return out, errors

        def _rest(self) -> tuple[Any, Any]:
            try:
                return super().communicate(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                watch.given_up = f"did not answer within {LONGEST:g} s: try it by hand with --list"
                _end(self)
                raise

    usual = subprocess.Popen
    subprocess.Popen = Watched  # type: ignore[misc]
    try:
        yield watch
    finally:
        subprocess.Popen = usual  # type: ignore[misc]


@contextmanager
def _telling(text: str) -> Iterator[None]:
    """A line on a terminal for as long as it is true; nothing elsewhere."""
    on_terminal = sys.stderr.isatty()
    try:
        if on_terminal:
            print(show.plain(text, 100), end="", file=sys.stderr, flush=True)
        yield
    finally:
        if on_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _last_line(errors: Any) -> str:
    text = errors.decode("utf-8", "replace") if isinstance(errors, bytes) else errors or ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return show.plain(lines[-1], 200) if lines else ""


def _end(process: subprocess.Popen[Any]) -> None:
    """End a program and what it started, which shares its group with us for Ctrl-C and the terminal."""
    family = _family(process.pid)
    for how in (signal.SIGTERM, signal.SIGKILL):
        for pid in family:
            with suppress(OSError):
                os.kill(pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(LEAVING)
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()


def _family(pid: int) -> list[int]:
    """A process and all below it, as far as the kernel tells."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        children = []
    return [pid, *(each for child in children for each in _family(int(child)))]
