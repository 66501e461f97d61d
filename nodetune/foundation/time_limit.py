"""A limit on the CPU time of one piece of work: other threads, and other programs on this machine, do not count."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN_SECONDS = 0.5
"""The interval between two looks at the CPU time, once the time could be over by the clock."""


class OutOfTimeError(Exception):
    """The work took longer than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the work when this thread has spent so many seconds of CPU time on it.

    Signals reach Python code between two steps, so a single call of a C function is not interrupted. They reach only the
    main thread: elsewhere there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    end, working = time.thread_time() + seconds, True

    def look(*_: Any) -> None:
        if working and time.thread_time() >= end:
            raise OutOfTimeError(f"it took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        working = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
