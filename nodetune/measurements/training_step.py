"""One synthetic step of training: products of transformer layers, the all-reduce of their gradients, and the next input.

What: each GPU multiplies in bf16 what `layers` transformer layers of width `hidden` multiply forward and backward for `tokens` tokens
(query, key, value, output, and two of four times the width; no attention, no optimiser). As soon as a layer has its gradients,
NCCL reduces them while the layer before computes; the tokens of the next step come meanwhile from pinned host memory.
Metrics, of all GPUs: step (ms); tflops (TFLOP/s a GPU: its share of the tensor cores is the MFU); all_reduce_hidden and input_hidden,
in %: the time of a step without the all-reduce (without the input) as a share of a whole step. What is missing from 100 is exposed:
the GPUs wait for it, or compute more slowly because of it.
How: the three kinds of step in turn, `steps` of each without a pause, timed by the GPU's events; one turn before does not count.
The all-reduce is checked before, element by element; elements of all products and every byte of the input after.
Statistic: the median of the turns; a turn is the mean of the GPUs.

Manually: PyTorch's DistributedDataParallel with no_sync() and without, the loader replaced by a tensor that stays.
Options: hidden, tokens, layers, steps, repeats, gpus, nccl, library (of cuBLASLt), check.
"""

import time

from nodetune.measurements.cuda import cublaslt, gpus, products
from nodetune.measurements.host import numa
from nodetune.measurements.host import report as reporting
from nodetune.measurements.nccl_support import nccl_cases, nccl_log, nccl_rank, nccl_results, nccl_run
from . import gpu_copy

SECONDS = 90.0
SCOPE = "collective"
GPUS = 2
ORDER = 104
SUITES = {"full": {}}
TOLERANCE = {"": {"peers": 7, "baseline": 7, "drift": 2}}
SIZE_MATTERS = True

KINDS = ("whole", "without_all_reduce", "without_input")
MAX_REPEATS = (nccl_rank.MAX_AGREED - 1) // len(KINDS)
LINEARS = ((3, 1), (1, 1), (4, 1), (1, 4))
"""Outputs and inputs of a layer's products, as multiples of its width."""


class Plan:
    """The size of the step. Raises MeasurementError."""

    def __init__(self, options):
        for name, usual in (("hidden", 4096), ("tokens", 8192), ("layers", 4), ("steps", 3), ("repeats", 5)):
            setattr(self, name, options.get(name, usual))
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise reporting.MeasurementError("{} {}: a whole number from 1 on".format(name, getattr(self, name)))
        if self.repeats > MAX_REPEATS:
            text = "repeats {}: 1 to {} are possible"
            raise reporting.MeasurementError(text.format(self.repeats, MAX_REPEATS))
        self.gradients = 2 * self.hidden**2 * sum(out * into for out, into in LINEARS)
        """Bytes of a layer's gradients, as of its weights."""
        self.input = 2 * self.hidden * self.tokens

    def shapes(self):
        """Return the products of a layer: (forward, backward)."""
        width, tokens = self.hidden, self.tokens
        sides = [(out * width, into * width) for out, into in LINEARS]
        forward = [(out, tokens, into) for out, into in sides]
        backward = [each for out, into in reversed(sides) for each in ((into, tokens, out), (out, into, tokens))]
        return tuple([products.Shape("bf16", *each, bell=True) for each in part] for part in (forward, backward))

    @property
    def flops(self):
        return self.layers * sum(shape.flops for part in self.shapes() for shape in part)


def measure(options, report):
    plan = Plan(options)
    fixed = {"sizes": [plan.gradients], "collectives": ["all_reduce"], "in_place": False, "latency_sizes": []}
    asked = nccl_cases.checked(dict(options, dtype="bfloat16", repeats=plan.repeats, **fixed))
    cases, jobs, conditions, of = nccl_run.prepared(asked, nccl_cases.planned, report)
    nccl_run.run(jobs, Results(cases, jobs, conditions, of, report), report, take_part)


def take_part(job, out, given):
    nccl_rank.take_part(job, out, given, make=Rank)


class Step:
    """The work of one GPU. `reduce(stream)` queues the all-reduce of a layer's gradients."""

    def __init__(self, gpu, library, plan, reduce, reducing):
        self.gpu, self.plan = gpu, plan
        self._reduce, self._reducing = reduce, reducing
        self._computing, self._copying = gpu.stream(), gpu.stream()
        self._began, self._computed, self._reduced, self._fed = [gpu.event() for _ in range(4)]
        self.start, self.end = gpu.event(), gpu.event()
        self.forward, self.backward = [self._products(library, shapes) for shapes in plan.shapes()]
        layout = numa.nodes()
        node = gpu.node if gpu.node in layout else min(layout)
        self.host = gpu_copy.Host(gpu, node, layout[node], plan.input)
        self._input = gpu.allocate(plan.input)

    def _products(self, library, shapes):
        made = [products.Product(self.gpu, library, shape) for shape in shapes]
        for each in made:
            each.stream = self._computing
        return made

    def queue(self, kind):
        """Queue some steps of a kind, between the events `start` and `end`."""
        self.gpu.use()  # cuBLASLt takes the context that is current
        self.gpu.record(self.start, self._computing)
        for _ in range(self.plan.steps):
            self._one(kind != "without_all_reduce", kind != "without_input")
        self.gpu.record(self.end, self._computing)

    def _one(self, reduced, fed):
        gpu, computing = self.gpu, self._computing
        if fed:  # the next input, while this step computes
            gpu.record(self._began, computing)
            gpu.after(self._copying, self._began)
            gpu.to_gpu(self._input, self.host.out, self.host.size, self._copying)
            gpu.record(self._fed, self._copying)
        for product in self.forward * self.plan.layers:
            product.multiply()
        for _ in range(self.plan.layers):
            for product in self.backward:
                product.multiply()
            if reduced:
                gpu.record(self._computed, computing)
                gpu.after(self._reducing, self._computed)
                self._reduce()
        if reduced:
            gpu.record(self._reduced, self._reducing)
            gpu.after(computing, self._reduced)
        if fed:
            gpu.after(computing, self._fed)

    def seconds(self):
        """Return the time of a step, once `end` is done."""
        return self.gpu.seconds(self.start, self.end) / self.plan.steps

    def check(self):
        """Raise MeasurementError if a product or the input is wrong."""
        for product in self.forward + self.backward:
            product.check(places=2)
        self.host.forget()
        self.gpu.to_host(self.host.back, self._input, self.host.size, self._copying)
        self.gpu.wait(self._copying)
        if not self.host.same():
            raise reporting.MeasurementError("{}: {}: the input".format(self.gpu.name, gpus.WRONG))


class Rank(nccl_rank.Rank):
    """A rank whose GPU trains."""

    def prepare(self):
        super().prepare()
        self.tell.step("loading cuBLASLt")
        self.library = cublaslt.Library(self.job.get("library"), self.gpu.driver.version)

    def case(self, case):
        """Check the all-reduce, then time the three kinds of step in turn."""
        once = self._calls(case)
        wrong = self._checked(case, once) if self.job["check"] else 0
        step = Step(self.gpu, self.library, Plan(self.job), once, self.stream)
        turns = [{kind: self._timed_step(step, kind) for kind in KINDS} for _ in range(self.job["repeats"] + 1)][1:]
        step.check()
        agreed = self.agree([float(wrong)] + [turn[kind] for kind in KINDS for turn in turns])
        means, count = [each / self.ranks for each in agreed[1:]], len(turns)
        told = {kind: means[number * count : (number + 1) * count] for number, kind in enumerate(KINDS)}
        return dict(told, wrong=wrong, wrong_everywhere=int(agreed[0]), **self._logged(case))

    def _timed_step(self, step, kind):
        """Return the seconds of a step. All ranks begin together."""
        self.together()
        step.queue(kind)
        look = time.monotonic() + nccl_rank.QUIET
        while not self.gpu.done(step.end):
            if time.monotonic() > look:
                self._raise_trouble()
                look = time.monotonic() + nccl_rank.QUIET
        return step.seconds()


class Results(nccl_results.Results):
    """Reports the four figures."""

    def _tell(self, case, parts):
        mine, plan = parts[0], Plan(self._jobs[0])
        path = nccl_log.merged([parts[member]["path"] for member in sorted(parts)])
        about = dict(self._conditions, **nccl_results.described(case, path, mine["chosen"]))
        about.update(dtype="bf16", n=plan.hidden, size=case["size"], tokens=plan.tokens, layers=plan.layers)
        about.update(input=plan.input, checked=self._jobs[0]["check"])
        whole = mine["whole"]
        self._report.result(self._subject, [1e3 * each for each in whole], "ms", better="lower", metric="step", **about)
        rates = gpus.rates(plan.flops, whole, 1e12)
        self._report.result(self._subject, rates, "TFLOP/s", metric="tflops", **about)
        for metric, kind in (("all_reduce_hidden", "without_all_reduce"), ("input_hidden", "without_input")):
            shares = [100.0 * each / full for each, full in zip(mine[kind], whole)]
            self._report.result(self._subject, shares, "%", metric=metric, **about)
