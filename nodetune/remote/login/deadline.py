"""A deadline for all work on one host, and what must be closed when it expires."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from nodetune.hosts.target import UnreachableError


class Deadline:
    """Shared by the thread that works for a host and the thread that watches the time.

    `stage` is the current step, for the message of an expired deadline.
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
        """Return the seconds left, at most `most`. Raise UnreachableError if none are left."""
        left = self.end - time.monotonic()
        if left <= 0 or self._over.is_set():
            raise self.overdue()
        return min(left, most)

    def overdue(self) -> UnreachableError:
        """Return the error for an expired deadline."""
        return UnreachableError(
            "deadline",
            f"not finished within {self.seconds:g} s, was {self.stage}: if the host is only slow, increase --timeout",
        )

    def spent(self) -> float:
        return time.monotonic() - self.start

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the deadline."""
        self._over.wait(self.left(seconds))

    def on_end(self, close: Callable[[], None]) -> None:
        """Call `close` when the deadline expires; immediately if it has expired."""
        with self._lock:
            if not self._over.is_set():
                self._closers.append(close)
                return
        close()

    def cut(self) -> None:
        """Expire now: close connections and kill processes. That makes the thread of this host stop."""
        with self._lock:
            self._over.set()
            closers, self._closers = self._closers, []
        for close in reversed(closers):
            with suppress(Exception):  # one that is closed already must not keep the others open
                close()
