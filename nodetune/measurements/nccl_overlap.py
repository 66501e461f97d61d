"""A matrix product along with a collective: the speed of both, as NCCL's channels take multiprocessors from computing.

Each GPU multiplies bf16 matrices without a pause (see gemm) while it takes part in the collective (see nccl). Figures for
each collective and size, out of place: `all_reduce_with_gemm`, busbw in GB/s, and `gemm_with_all_reduce`, TFLOP/s, the
mean of the GPUs. `alone` in `about` is what each does without the other, measured just before. The collective's time is that
of the GPU's events around all its calls; products count that began and ended within it. Both streams have the same priority.
The data of the collective are checked before, and elements of the product after.

Manually: all_reduce_perf along with a loop of torch.mm, which does not show when both were running.
Options: collectives, sizes (bytes), gpus, repeats, n (rows of the matrices), check, nccl, library (of cuBLASLt).
"""

import math
import time

from nodetune.measurements.cuda import cublaslt, gpu_busy, products
from nodetune.measurements.host import report as reporting
from nodetune.measurements.nccl_support import nccl_cases, nccl_log, nccl_ops, nccl_rank, nccl_results, nccl_run

SECONDS = 120.0
SCOPE = "collective"
GPUS = 2
ORDER = 105
SUITES = {}
TOLERANCE = {"": {"peers": 7, "baseline": 7, "drift": 2}}
SIZE_MATTERS = True
SIZES = (67108864, 1073741824)  # 64 MiB and 1 GiB
TOGETHER_SECONDS = 0.25
"""Minimum seconds of the collective along with the product."""

PIECE_SECONDS = 0.01
"""Products between two checks of the time."""

MAX_REPEATS = (nccl_rank.MAX_AGREED - 2) // 2
"""Each repeat has two figures that the ranks agree on."""

MAX_CALLS = 5000
MAX_WAITING = 64
"""Calls of the collective that are queued before the product is topped up."""


def measure(options, report):
    given = dict({"sizes": list(SIZES), "collectives": ["all_reduce"], "in_place": False, "repeats": 3}, **options)
    asked = nccl_cases.checked(dict(given, latency_sizes=[]))
    if asked["repeats"] > MAX_REPEATS:
        text = "repeats {}: 1 to {} are possible"
        raise reporting.MeasurementError(text.format(asked["repeats"], MAX_REPEATS))
    cases, jobs, conditions, of = nccl_run.prepared(asked, nccl_cases.planned, report)
    nccl_run.run(jobs, Results(cases, jobs, conditions, of, report), report, take_part)


def take_part(job, out, given):
    nccl_rank.take_part(job, out, given, make=Rank)


class Rank(nccl_rank.Rank):
    """A rank whose GPU also multiplies matrices."""

    def prepare(self):
        super().prepare()
        self.tell.step("loading cuBLASLt")
        library = cublaslt.Library(self.job.get("library"), self.gpu.driver.version)
        self.product = products.Product(self.gpu, library, products.square(self.job))
        self.pieces = max(1, int(PIECE_SECONDS * 5e14 / self.product.shape.flops))

    def case(self, case):
        """Check it, then time each alone and both at once. None where the time is over, or would be, on any host."""
        start = time.monotonic()
        if self.agree([float(start + self._last > self.job["until"])])[0]:
            return None
        once = self._calls(case)
        wrong = self._checked(case, once) if self.job["check"] else 0
        iterations = self._iterations(self._timed(once, 1))
        self._timed(once, iterations)
        alone = self._timed(once, iterations) / iterations
        mean = self.agree([alone])[0] / self.ranks
        count = max(1, min(MAX_CALLS, math.ceil(TOGETHER_SECONDS / mean)))
        computing = self._computing_alone()
        both = [self._together(once, count) for _ in range(self.job["repeats"])]
        self.product.check()
        agreed = self.agree([wrong, computing] + [each for pair in both for each in pair])
        self._last = time.monotonic() - start
        return dict(self._told(case, mean, [each / self.ranks for each in agreed[1:]], count), wrong=wrong,
                    wrong_everywhere=int(agreed[0]))  # fmt: skip

    def _told(self, case, alone, means, iterations):
        return {
            "alone": alone,
            "gemm_alone": means[0],
            "seconds": means[1::2],
            "gemm": means[2::2],
            "iterations": iterations,
            **self._logged(case),
        }

    def _computing_alone(self):
        """Return TFLOP/s of the product alone, for as long as it will have company."""
        busy = self._load()
        end = time.monotonic() + TOGETHER_SECONDS
        while time.monotonic() < end:
            busy.top_up()
        return busy.rate(None, None)

    def _load(self):
        """Return the running product: its first piece is done."""
        amount = self.product.shape.flops * self.pieces
        busy = Load(self.gpu, self.product.stream, self.product.times(self.pieces), amount)
        busy.top_up()
        busy.wait_for_first()
        return busy

    def _together(self, once, count):
        """Return (seconds a call, TFLOP/s) of both at once. All ranks begin together."""
        busy = self._load()
        start, end = self.gpu.event(), self.gpu.event()
        self.together()
        busy.top_up()
        self.gpu.record(start, self.stream)
        for number in range(count):
            once()
            if number % MAX_WAITING == 0:
                busy.top_up()
        self.gpu.record(end, self.stream)
        look = time.monotonic() + nccl_rank.QUIET
        while not self.gpu.done(end):
            busy.top_up()
            if time.monotonic() > look:
                self._raise_trouble()
                look = time.monotonic() + nccl_rank.QUIET
        return self.gpu.seconds(start, end) / count, busy.rate(start, end)


class Load(gpu_busy.Busy):
    """Pieces of work, and their rate between two events of another stream."""

    def wait_for_first(self):
        while not self.gpu.done(self._events[1]):
            pass

    def rate(self, start, end):
        """Return TFLOP/s of the pieces that lie between two events (None: all). Raise MeasurementError if there is none."""
        self.gpu.wait(self._stream)
        first = self._events[0]
        times = [self.gpu.seconds(first, event) for event in self._events[1:]]
        low = self.gpu.seconds(first, start) if start else 0.0
        high = self.gpu.seconds(first, end) if end else times[-1]
        return within(times, low, high, self._amount)


def within(times, low, high, amount):
    """Return TFLOP/s: `times` are the ends of pieces of `amount` operations, one after another without a pause."""
    ends = [at for at in times if low <= at <= high]
    if len(ends) < 2:
        raise reporting.MeasurementError("no product ended while the collective ran: the collective was too short")
    return amount * (len(ends) - 1) / (ends[-1] - ends[0]) / 1e12


class Results(nccl_results.Results):
    """Reports two figures for each case."""

    def _tell(self, case, parts):
        mine = parts[0]
        path = nccl_log.merged([parts[member]["path"] for member in sorted(parts)])
        about = dict(self._conditions, **nccl_results.described(case, path, mine["chosen"]))
        about.update(size=case["size"], in_place=False, iterations=mine["iterations"], checked=self._jobs[0]["check"])
        about.update(dtype=self._jobs[0]["dtype"], n=products.square(self._jobs[0]).n)
        ranks = self._conditions["gpus"]
        alone, both = (
            [round(nccl_ops.bandwidths(case["name"], case["size"], each, ranks)[1], 3) for each in seconds]
            for seconds in ([mine["alone"]], mine["seconds"])
        )
        combined = case["name"] + "_with_gemm"
        self._report.result(self._subject, both, "GB/s", metric=combined, **dict(about, alone=alone[0]))
        about = dict(about, alone=round(mine["gemm_alone"], 2))
        samples = [round(each, 2) for each in mine["gemm"]]
        self._report.result(self._subject, samples, "TFLOP/s", metric="gemm_with_" + case["name"], **about)
