"""A limit on the CPU time of one piece of work: other threads and other programs do not count."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN_SECONDS = 0.5
"""The interval between two checks of the CPU time, once the wall time has reached the limit."""


class OutOfTimeError(Exception):
    """The work exceeded its time."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the work when this thread has spent this much CPU time on it.

    Python handles signals between two steps, so a single call of a C function is not interrupted. They reach only the
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
