"""One rank with several communicators, each with a setting of its own, that take turns at the same work.

A place is a communicator: which setting it has, and how many were made before it, can matter. Before the places comes a
communicator that only lets the ranks agree: the first one that a process makes is faster than all others.

The work of a case is `calls` of the collective, recorded in a CUDA graph: replayed, no CPU takes part in it, and 64 KiB
take 15 µs instead of 60. Where NCCL or the driver cannot record it, or the case is about that, the calls are launched one by
one. With products, both are launched on two streams, as frameworks do, and timed until both are done.

One turn is one case at all places in random order, which is the same on all ranks.
"""

import hashlib
import json
import os
import time

from nodetune.measurements.cuda import cublaslt, products
from nodetune.measurements.host import report as reporting
from . import nccl_api, nccl_config, nccl_log, nccl_rank

WORK_SECONDS, MAX_CALLS = 0.002, 64
"""The work of a case: as many calls, a power of two, as fit into this time."""

VISIT_SECONDS, MAX_REPLAYS = 0.004, 5
"""Time at a place in one turn, in replays of the work, and twice that where the CPU takes part. Their median counts."""

STEP_SECONDS = 0.006
"""Time of the collectives of a step with products."""

REGISTER = "NCCL_GRAPH_REGISTER"
"""Off, unless it is set: NCCL would use the buffers of a graph in another way than those of other calls."""


def take_part(job, out, given):
    """Run one rank: make the communicators, then do what each line of `given` says until there is none."""
    os.environ.update(job["process"])
    os.environ.setdefault(REGISTER, "0")
    tell = nccl_rank.Teller(out)
    log = nccl_log.LogFile()
    tell.step("loading NCCL")
    rank = Rank(job, nccl_api.load(job.get("nccl")), log, tell)
    rank.prepare()
    count = 1 + len(job["places"])
    tell.say("ready", [rank.nccl.unique_id().hex() for _ in range(count)] if job["rank"] == 0 else None)
    tell.step("waiting for the other ranks")
    line = given.readline()
    if line:  # else the team has ended
        tell.step("making {} communicators".format(count))
        rank.join_all([bytes.fromhex(each) for each in json.loads(line.decode("ascii"))])
        tell.say("joined", None)
    for line in given:
        kind, number, turn = json.loads(line.decode("ascii"))
        if kind == "end":
            return
        tell.step(nccl_rank.in_words(job["cases"][number]))
        tell.say(kind, rank.set_up(number) if kind == "set up" else rank.turn(number, turn))


class Rank(nccl_rank.Rank):
    """A rank with a communicator at each place, and products if a case has them."""

    def prepare(self):
        super().prepare()
        self._work, self._amounts = {}, {}
        if any(case["products"] for case in self.job["cases"]):
            self.tell.step("loading cuBLASLt")
            library = cublaslt.Library(self.job.get("library"), self.gpu.driver.version)
            self.product = products.Product(self.gpu, library, products.square(self.job))
            self.computed = self.gpu.event()

    def join_all(self, identities):
        self.join(identities[0])
        self._places = [self._joined(place, identity) for place, identity in zip(self.job["places"], identities[1:])]

    def _joined(self, place, identity):
        """Return the communicator of a place. Its variables stay until its first call."""
        before = {name: os.environ.get(name) for name in place["making"]}
        os.environ.update(place["making"])
        fields = place["fields"]
        config = nccl_config.made(fields, self.nccl.version) if fields else None
        communicator = self.nccl.join(identity, self.ranks, self.rank, config)
        step = ("ncclAllReduce", self.small, self.small, 1, nccl_api.FLOAT64, nccl_api.SUM, communicator, self.stream)
        self.nccl.call(*step)
        self.wait()
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        return communicator

    # Before the first turn

    def set_up(self, number):
        """Check a case at each place, and make its work. Return what is known of it."""
        case = self.job["cases"][number]
        found = [self._looked_at(case, communicator) for communicator in self._places]
        amounts = self.job["amounts"].get(case["key"]) or self._amount(case)
        self._amounts[number], why = amounts, ""
        self._work[number] = []
        for communicator in self._places:
            work, problem = self._made(case, communicator, amounts)
            self._work[number].append(work)
            why = why or problem
        took = self.agree([self._once(self._work[number][0], case)])[0] / self.ranks
        self._replays = getattr(self, "_replays", {})
        visit = VISIT_SECONDS if case["recorded"] or case["products"] else 2 * VISIT_SECONDS
        self._replays[number] = max(1, min(MAX_REPLAYS, int(visit / took)))
        return {"places": found, "amounts": amounts, "launched": why}

    def _looked_at(self, case, communicator):
        once = self._calls(case, communicator)
        wrong = self._checked(case, once) if self.job["check"] else 0
        return dict(self._logged(case), wrong=wrong, wrong_everywhere=int(self.agree([float(wrong)])[0]))

    def _amount(self, case):
        """Return [calls, products] of a case, by the speed of the first place."""
        once = self._calls(case, self._places[0])
        self._timed(once, 2)
        call = self.agree([self._timed(once, 8) / 8])[0] / self.ranks
        if not case["products"]:
            calls = 1
            while 2 * calls <= MAX_CALLS and 2 * calls * call <= WORK_SECONDS:
                calls *= 2
            return [calls, 0]
        calls = max(1, round(STEP_SECONDS / call))
        self._multiplied(2)
        product = self.agree([self._multiplied(4) / 4])[0] / self.ranks
        return [calls, max(1, round(self.job["ratio"] * calls * call / product))]

    def _multiplied(self, count):
        """Return the seconds of some products alone."""
        self.together()
        start = time.perf_counter()
        self.product.times(count)()
        self.gpu.wait(self.product.stream)
        return time.perf_counter() - start

    def _made(self, case, communicator, amounts):
        """Return (a function that queues the work once, why it is not a graph)."""
        calls, multiplications = amounts
        once = self._calls(case, communicator)

        def launch():
            for _ in range(calls):
                once()

        if multiplications:
            return self._step(launch, self.product.times(multiplications)), ""
        if not case["recorded"]:
            return launch, ""
        work, problem = launch, ""
        try:
            work = self.gpu.graph(self.stream, launch)
        except reporting.MeasurementError as why:
            problem = str(why)
        if self.agree([float(bool(problem))])[0]:
            return launch, problem or "another rank could not record it"
        return work, ""

    def _step(self, launch, multiply):
        def work():
            self.gpu.after(self.product.stream, self._start)
            launch()
            multiply()
            self.gpu.record(self.computed, self.product.stream)
            self.gpu.after(self.stream, self.computed)

        return work

    # A turn

    def turn(self, number, turn):
        """Return the seconds at each place, the mean of all ranks; None where the time is over on any of them."""
        if self.agree([float(time.monotonic() > self.job["until"])])[0]:
            return None
        case, work = self.job["cases"][number], self._work[number]
        order = shuffled(range(len(work)), self.job["seed"], number, turn)
        self._once(work[order[0]], case)  # the first work after a pause, or after another process, is slower
        seconds = [0.0] * len(work)
        for place in order:
            seconds[place] = self._visited(number, work[place], case)
        return [each / self.ranks for each in self.agree(seconds)]

    def _visited(self, number, work, case):
        if not case["products"]:
            self._once(work, case)
        taken = sorted(self._once(work, case, apart=case["products"]) for _ in range(self._replays[number]))
        middle = len(taken) // 2
        seconds = (taken[middle] + taken[-1 - middle]) / 2
        return seconds if case["products"] else seconds / self._amounts[number][0]

    def _once(self, work, case, apart=True):
        """Return the GPU's seconds for the work. `apart`: all ranks begin together."""
        if apart:
            self.together()
        self._start, end = self._events()
        self.gpu.record(self._start, self.stream)
        work()
        self.gpu.record(end, self.stream)
        self.wait()
        return self.gpu.seconds(self._start, end)

    def _events(self):
        if not hasattr(self, "_both"):
            self._both = self.gpu.event(), self.gpu.event()
        return self._both


def shuffled(items, *seed):
    """Return the items in an order that is random, and the same with every Python."""
    words = ",".join(str(each) for each in seed)
    return sorted(items, key=lambda each: hashlib.sha256("{},{}".format(words, each).encode("ascii")).digest())


def shuffled_list(items, *seed):
    """Return a list of anything in such an order."""
    return [items[at] for at in shuffled(range(len(items)), *seed)]
