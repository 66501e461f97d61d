"""Jobs of numbers, as NCCL's Inspector times them: each rank computes, joins its collectives and waits there for the last one.

GPUs differ for good (bias, at most 3 %), from step to step (noise), slowly (drift), and pause now and then. A job is data-parallel, with one
collective a step or with buckets that overlap the computation, or tensor-parallel within its hosts and data-parallel across."""

from nodetune.jobs.late_ranks.model import Communicator, Job, Kind, Process

GPUS = 8
STEPS = 200
LAYOUTS = ("one", "buckets", "same buckets", "tensor")
STEP = 100_000
"""µs of computation."""


class LateJob:
    """A job on hosts. `slow`: (host or '', local rank or None) → how much slower these compute;
    `program`: rank → how much more it has to do."""

    quiet = False

    def __init__(self, name, hosts, rng, slow=(), program=(), layout=None):
        self.name, self.hosts, self._rng, self._steps = name, hosts, rng, STEPS
        self._count = len(hosts) * GPUS
        self._slow, self._program = dict(slow), dict(program)
        self._noise, bias = rng.choice((0.003, 0.01, 0.03)), rng.choice((0.002, 0.005, 0.01))
        drift, self._pause = rng.choice((0, 0.005, 0.015)), rng.choice((0, 0.002, 0.01))
        if self.quiet:
            self._noise, bias, drift, self._pause = 0.005, 0.002, 0.002, 0.002
        self._own = [
            max(-3 * bias, min(3 * bias, rng.gauss(0, bias))) + self._planted(rank) for rank in range(self._count)
        ]
        self._drift = [rng.uniform(-drift, drift) for _ in range(self._count)]
        self._layout = layout or rng.choice(LAYOUTS)
        self._calls = {}
        self._run()

    def _planted(self, rank):
        host, local = self.hosts[rank // GPUS], rank % GPUS
        return self._slow.get((host, local), 0) + self._slow.get((host, None), 0) + self._program.get(rank, 0)

    def job(self):
        groups = {}
        for (name, kind), calls in self._calls.items():
            groups.setdefault(name, {})[kind] = calls
        members = {name: self._members(name) for name in groups}
        return Job(
            self.name,
            [
                Communicator(f"{self.name} {name}", len(members[name]), members[name], kinds)
                for name, kinds in groups.items()
            ],
        )

    def _ranks(self, name):
        letter, number = name[0], int(name[1:])
        if letter == "t":
            return range(number * GPUS, (number + 1) * GPUS)
        return range(self._count) if letter == "w" else range(number, self._count, GPUS)

    def _members(self, name):
        return {at: Process(self.hosts[rank // GPUS], 1000 + rank) for at, rank in enumerate(self._ranks(name))}

    def _compute(self, rank, step, share):
        slower = self._own[rank] + self._drift[rank] * (2 * step / self._steps - 1) + self._rng.gauss(0, self._noise)
        pause = self._rng.uniform(0.2, 3) if self._rng.random() < self._pause * share else 0
        return share * STEP * (1 + slower) + pause * STEP

    def _run(self):
        clock = [0.0] * self._count
        for step in range(self._steps):
            if self._layout == "tensor":
                for half in range(2):
                    clock = [at + self._compute(rank, step, 0.5) for rank, at in enumerate(clock)]
                    for group in range(len(self.hosts)):
                        self._collect(f"t{group}", "AllReduce", 1 << 24, 2 * step + half, clock, 900)
                for group in range(GPUS):
                    self._collect(f"d{group}", "ReduceScatter", 1 << 26, step, clock, 4000)
            elif self._layout == "one":
                clock = [at + self._compute(rank, step, 1) for rank, at in enumerate(clock)]
                self._collect("w0", "AllReduce", 1 << 28, step, clock, 8000)
            else:
                self._buckets(step, clock)

    def _buckets(self, step, clock, count=4):
        """Computation goes on while the buckets are reduced; the step ends with the last one."""
        ready, ended = list(clock), 0.0
        for bucket in range(count):
            ready = [at + self._compute(rank, step, 1 / count) for rank, at in enumerate(ready)]
            joined = [max(at, ended) for at in ready]
            size = 1 << 25 if self._layout == "same buckets" else (bucket + 1) << 24
            number = step * count + bucket
            self._collect("w0", "AllReduce", size, number, joined, 2500)
            ended = joined[0]
        clock[:] = joined

    def _collect(self, name, collective, size, number, clock, transfer):
        """Let the ranks of a communicator wait for the last one, and note the time of each kernel."""
        ranks = self._ranks(name)
        if len(ranks) < 2:
            return
        end = max(clock[rank] for rank in ranks) + transfer * (1 + self._rng.gauss(0, 0.03))
        calls = self._calls.setdefault((name, Kind(collective, size, len(ranks))), {})
        for at, rank in enumerate(ranks):
            time = max(1, round(end - clock[rank] + self._rng.gauss(0, 5)))
            calls.setdefault(at, {})[number] = (time, 1_700_000_000_000_000 + round(end))
            clock[rank] = end


class QuietJob(LateJob):
    """Its GPUs are nearly alike."""

    quiet = True
