"""One rank in its own process with one GPU: join the others, then run the cases with them.

The order of a case is that of nccl-tests: check, warm up, all ranks wait for each other, `iterations` calls are queued, and the
time until the last one is done is divided by their number. That is one repeat; the mean over all ranks counts. Ranks
agree on everything through NCCL itself, so that it makes no difference on how many hosts they are.

Messages to the team (process_team): lines of JSON [kind, content].
"""

import struct
import time

from nodetune.measurements.cuda import driver_api, driver_gpu, gpus, nvlink_bytes
from nodetune.measurements.host import gpu_other_load
from nodetune.measurements.host import report as reporting
from . import nccl_api, nccl_data, nccl_log, nccl_ops

MIN_REPEAT_SECONDS, MAX_REPEAT_SECONDS = 0.002, 0.1
"""Seconds. A repeat has the requested iterations, but more if they are too short and fewer if too long."""

MAX_ITERATIONS = 500
SMALL = 1 << 20
"""Bytes below which a call's time does not predict that of larger ones."""

MAX_AGREED = 63
"""Maximum count of numbers that ranks can agree on at once."""

QUIET = 0.25
"""Seconds between two checks for asynchronous errors while the GPU works."""


class Teller:
    """The pipe to the team. Has the members of a report that gpus.opened needs."""

    def __init__(self, out):
        self.say, self.step = out.send, out.step
        self.problem = None

    def skip(self, reason, subject=None, metric=None):
        self.problem = "{}: {}".format(subject, reason) if subject else reason

    def failed(self, reason, subject=None, metric=None):
        self.problem = reason


def look_around(options, out):
    """Report the GPUs and NCCL of this host from a process that then ends: CUDA does not survive a fork."""
    tell = Teller(out)
    tell.step("loading NCCL")
    nccl = nccl_api.load(options.get("nccl"))
    tell.step("loading libcuda")
    seen = gpus.known(tell)
    devices = [seen.get(gpus.bdf(gpu.bdf)) or gpus.Seen("GPU{}".format(gpu.device)) for gpu in
               driver_gpu.devices(driver_api.Driver(options.get("libcuda")))]  # fmt: skip
    free = {each.name: each.free_memory() for each in devices if not each.partitioned()}
    names = sorted(free, key=lambda name: int(name[3:]))
    if not names:
        raise reporting.SkipError("MIG is on: NCCL does not work between MIG instances")
    others = gpu_other_load.Watch(each for each in devices if each.name in free).told()
    found = {"gpus": names, "nccl": nccl.version, "library": nccl.path, "free": free, "others": others}
    tell.say("found", found)


def take_part(job, out, given, make=None):
    """Run one rank (`make`: of another class) from start to end.

    `job` has rank, ranks, gpu, cases, until and the options; `given` is where the unique id comes from.
    """
    tell = Teller(out)
    log = nccl_log.LogFile()
    tell.step("loading NCCL")
    rank = (make or Rank)(job, nccl_api.load(job.get("nccl")), log, tell)
    rank.prepare()
    tell.say("ready", rank.nccl.unique_id().hex() if job["rank"] == 0 else None)
    tell.step("waiting for the other ranks")
    identity = bytes.fromhex(given.readline().decode("ascii").strip())
    if not identity:
        return  # the team has ended
    tell.step("ncclCommInitRank")
    rank.join(identity)
    before = nvlink_bytes.sent(rank.gpu.seen) if job.get("links") else {}
    for number, case in enumerate(job["cases"]):
        tell.step(in_words(case))
        done = rank.case(case)
        if done is None:
            tell.say("out of time", number)
            break
        tell.say("case", dict(done, number=number))
    rank.together()
    figure = nvlink_bytes.least(rank.gpu.seen, before) if before else None
    if figure:
        tell.say("links", [rank.gpu.name, figure])


def in_words(case):
    """Return `all_reduce of 1 GiB in place`."""
    text = "{} of {}".format(case["name"], driver_api.in_words(case["size"]))
    return text + (" in place" if case["in_place"] else "")


class Rank:
    """A communicator on one GPU, with a buffer to send from and one to receive into."""

    def __init__(self, job, nccl, log, tell):
        self.job, self.nccl, self.tell = job, nccl, tell
        self.rank, self.ranks, self.kind = job["rank"], job["ranks"], job["dtype"]
        self._log = log
        self.type = {"float32": nccl_api.FLOAT32, "bfloat16": nccl_api.BFLOAT16}[self.kind]
        self.communicator = None
        self._pace = 0.0
        """Seconds a byte of the last call that was not small."""
        self._last = 0.0
        """Seconds that the last case took."""

    def prepare(self):
        """Take the GPU and its memory. Raise MeasurementError."""
        asked = {"gpus": [self.job["gpu"]], "libcuda": self.job.get("libcuda")}
        found = gpus.opened(asked, self.tell, watched=False)  # the other ranks are there too
        if not found:
            raise reporting.MeasurementError(self.tell.problem)
        self.gpu = found[0]
        largest = max(case["size"] for case in self.job["cases"])
        self.tell.step("allocating twice {}".format(driver_api.in_words(largest)))
        self.stream, self.event = self.gpu.stream(), self.gpu.event()
        self.small = self.gpu.allocate(8 * (MAX_AGREED + 1))
        self.sent, self.received = self.gpu.allocate(largest), self.gpu.allocate(largest)
        self.data = nccl_data.Data(self.gpu, self.kind, self.ranks)
        for buffer in (self.sent, self.received):  # zeros would move faster than data: less power
            self.data.lay(buffer, largest, self.rank, 0)

    def join(self, identity):
        self.communicator = self.nccl.join(identity, self.ranks, self.rank)

    # One case

    def case(self, case):
        """Check it, then time it. Return None if the time is over on any host, or would be before the case is done."""
        start = time.monotonic()
        over = start + self._expected(case) > self.job["until"]
        if self.agree([float(over)])[0]:
            return None
        once = self._calls(case)
        wrong = self._checked(case, once) if self.job["check"] else 0
        for _ in range(self.job["warmup"]):
            once()
        self.wait()
        iterations = self._iterations(self._timed(once, 1))
        self._timed(once, iterations)  # the first repeat after a change of size is slower than those after it
        times = [self._timed(once, iterations) / iterations for _ in range(self.job["repeats"])]
        agreed = self.agree(times + [float(wrong)])
        self._last = time.monotonic() - start
        if case["size"] >= SMALL:
            self._pace = agreed[0] / self.ranks / case["size"]
        return self._found(case, [each / self.ranks for each in agreed[:-1]], iterations, wrong, int(agreed[-1]))

    def _expected(self, case):
        """Return the maximum time of a case: larger calls take no longer per byte and no less in total."""
        call = self._pace * case["size"]
        repeat = max(call, min(MAX_REPEAT_SECONDS, max(MIN_REPEAT_SECONDS, call * self.job["iterations"])))
        each = call * (self.job["warmup"] + 3) + repeat * (self.job["repeats"] + 1)
        return max(self._last, each if self._pace else 0.0)

    def _found(self, case, times, iterations, wrong, wrong_everywhere):
        return {
            "seconds": times,
            "iterations": iterations,
            "wrong": wrong,
            "wrong_everywhere": wrong_everywhere,
            **self._logged(case),
        }

    def _logged(self, case):
        """Return what NCCL's log says of a case: the path of the data, and what it chose for it."""
        log, name = self._log.read(), nccl_ops.LOGGED.get(case["name"])
        chosen = log.chosen(name, nccl_ops.share(case["name"], case["size"], self.ranks)) if name else {}
        return {"path": log.path(), "chosen": chosen}

    def _checked(self, case, once):
        """Count the words that are wrong here."""
        name, size, in_place = case["name"], case["size"], case["in_place"]
        self.gpu.poison(self.received, size)
        offset, count, start = nccl_ops.brought(name, size, self.ranks, self.rank, in_place)
        self.data.lay((self.received if in_place else self.sent) + offset, count, self.rank, start)
        once()
        self.wait()
        return self.data.wrong(self.received, nccl_ops.wanted(name, size, self.ranks, self.rank, in_place))

    def _iterations(self, seconds):
        """Return the number of iterations in a repeat, which is equal on all ranks."""
        mean = self.agree([seconds])[0] / self.ranks
        wanted = max(self.job["iterations"], min(MAX_ITERATIONS, int(MIN_REPEAT_SECONDS / mean)))
        return max(1, min(wanted, int(MAX_REPEAT_SECONDS / mean)))

    def _timed(self, once, iterations):
        """Return the wall time for `count` calls; all ranks begin together."""
        self.together()
        start = time.perf_counter()
        for _ in range(iterations):
            once()
        self.wait()
        return time.perf_counter() - start

    def together(self):
        """Wait until all ranks have arrived."""
        self._reduce(self.small + 8 * MAX_AGREED, self.small + 8 * MAX_AGREED, 1, nccl_api.FLOAT64)
        self.wait()

    def agree(self, values):
        """Return the sums of some numbers over all ranks."""
        self.gpu.put(self.small, struct.pack("<{}d".format(len(values)), *values))
        self._reduce(self.small, self.small, len(values), nccl_api.FLOAT64)
        self.wait()
        return list(struct.unpack("<{}d".format(len(values)), self.gpu.fetch(self.small, 8 * len(values))))

    def wait(self):
        """Wait until the GPU has done all its work. Raise MeasurementError if a peer or the network is gone."""
        query, event = self.gpu.driver.functions["cuEventQuery"], self.event
        self.gpu.record(event, self.stream)
        look = time.monotonic() + QUIET
        while query(event) == driver_api.NOT_READY:
            if time.monotonic() > look:
                self._raise_trouble()
                look = time.monotonic() + QUIET
        self.gpu.done(event)  # raises what went wrong on the GPU

    def _raise_trouble(self):
        trouble = self.nccl.trouble(self.communicator)
        if trouble:
            warnings = self._log.read().warnings
            raise reporting.MeasurementError("NCCL: " + trouble + ("; it logged: " + warnings[-1] if warnings else ""))

    # The calls

    def _reduce(self, source, target, count, kind):
        self.nccl.call("ncclAllReduce", source, target, count, kind, nccl_api.SUM, self.communicator, self.stream)

    def _calls(self, case, communicator=None):
        """Return a function that queues the collective once, on another communicator if given."""
        steps = [step + (communicator or self.communicator, self.stream) for step in self._steps(case)]
        if len(steps) > 1:
            steps = [("ncclGroupStart",)] + steps + [("ncclGroupEnd",)]
        calls = [self.nccl.prepared(*step) for step in steps]

        def once():
            for call in calls:
                call()

        return once

    def _steps(self, case):
        """Return the NCCL calls of a case, without their last two arguments."""
        name, in_place = case["name"], case["in_place"]
        part = nccl_ops.share(name, case["size"], self.ranks)
        source, target = self.received if in_place else self.sent, self.received
        mine = self.rank * part if in_place else 0
        what = (part // nccl_ops.WIDTH[self.kind], self.type)
        if name == "all_reduce":
            return [("ncclAllReduce", source, target) + what + (nccl_api.SUM,)]
        if name == "all_gather":
            return [("ncclAllGather", source + mine, target) + what]
        if name == "reduce_scatter":
            return [("ncclReduceScatter", source, target + mine) + what + (nccl_api.SUM,)]
        if name == "alltoall" and nccl_api.ALLTOALL in self.nccl.functions:
            return [(nccl_api.ALLTOALL, source, target) + what]
        if name == "alltoall":
            sends = [("ncclSend", source + peer * part) + what + (peer,) for peer in range(self.ranks)]
            return sends + [("ncclRecv", target + peer * part) + what + (peer,) for peer in range(self.ranks)]
        after, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        return [("ncclSend", source) + what + (after,), ("ncclRecv", target) + what + (before,)]
