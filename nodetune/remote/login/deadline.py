"""One host's time: a deadline over everything that is done for it, and what is torn down when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from nodetune.hosts.target import UnreachableError


class Deadline:
    """Shared by the thread that works for a host and the one that watches over it.

    `stage` says what is going on, so that a deadline has a name.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.stage = "starting"
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []

    def left(self, most: float = 3600.0) -> float:
        """Return the seconds left, at most `most`. Raise UnreachableError if there are none."""
        left = self.end - time.monotonic()
        if left <= 0 or self._over.is_set():
            raise self.overdue()
        return min(left, most)

    def overdue(self) -> UnreachableError:
        """Return the error of a host whose time is over."""
        return UnreachableError(
            "deadline",
            f"not done within {self.seconds:g} s, was {self.stage}: if the host is merely slow, raise --timeout",
        )

    def spent(self) -> float:
        return time.monotonic() - self.start

    def pause(self, seconds: float) -> None:
        """Wait, unless the time ends first."""
        self._over.wait(self.left(seconds))

    def on_end(self, close: Callable[[], None]) -> None:
        """Have `close` called when the time is over; at once if it is."""
        with self._lock:
            if not self._over.is_set():
                self._closers.append(close)
                return
        close()

    def cut(self) -> None:
        """End it now: close connections, kill processes. Whoever works for this host finds out by that."""
        with self._lock:
            self._over.set()
            closers, self._closers = self._closers, []
        for close in reversed(closers):
            with suppress(Exception):  # one that is closed already must not keep the others open
                close()
