"""Keep GPUs busy for a while: top up launches as they complete, and compute the rate over stretches of time."""

import time

from nodetune.measurements.host import report as reporting

QUEUED = 3
"""Queued pieces of work on a GPU: enough that it never idles, few enough that a killed load ends at once."""

PIECE_SECONDS = 0.05
WINDOW_SECONDS = 0.5


class Busy:
    """One GPU's stream of work: `work()` queues a piece of about PIECE_SECONDS that makes `amount` operations."""

    def __init__(self, gpu, stream, work, amount):
        self.gpu, self.problem = gpu, None
        self._stream, self._work, self._amount = stream, work, amount
        self._events = []

    def top_up(self):
        """Keep QUEUED pieces waiting. Raise MeasurementError if earlier work failed."""
        if not self._events:
            self._mark()
        for _ in range(QUEUED):
            if len(self._events) <= QUEUED or self.gpu.done(self._events[-QUEUED]):
                self._work()
                self._mark()

    def _mark(self):
        self._events.append(self.gpu.event())
        self.gpu.record(self._events[-1], self._stream)

    def rates(self, settle):
        """Return TFLOP/s over each stretch after the first `settle` seconds.

        Wait for the last piece. Raise MeasurementError.
        """
        if self.problem is not None:
            raise self.problem
        self.gpu.wait(self._stream)
        times = [self.gpu.seconds(self._events[0], event) for event in self._events]
        found = windows(times, self._amount, settle)
        if not found:
            text = "{}: {:.1f} s of load are too short: {:g} s are needed after the {:g} s that do not count"
            raise reporting.MeasurementError(
                text.format(self.gpu.name, times[-1] if times else 0.0, WINDOW_SECONDS, settle)
            )
        return found


def windows(times, amount, settle):
    """Return rates over stretches of WINDOW_SECONDS after `settle`, in 1e12 per second.

    `times`: when pieces of `amount` ended.
    """
    samples, since, count = [], None, 0
    for at in times:
        if since is None:
            since = at if at >= settle else None
            continue
        count += 1
        if at - since >= WINDOW_SECONDS:
            samples.append(amount * count / (at - since) / 1e12)
            since, count = at, 0
    return samples


def keep_busy(all_busy, seconds):
    """Run the load on all GPUs at once. Leave out a GPU that fails, and continue with the others."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for busy in all_busy:
            if busy.problem is None:
                try:
                    busy.top_up()
                except reporting.MeasurementError as problem:
                    busy.problem = problem
        time.sleep(PIECE_SECONDS / 5)
