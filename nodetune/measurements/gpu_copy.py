"""Copies between host and GPU with pinned memory over PCIe (or C2C), each way and both ways at once.

Metrics h2d, d2h, both (the sum of both directions), GB/s; h2d_far_share and d2h_far_share, in %: what memory of the farthest node
gives as a share of what the nearest one gives. Pinned memory of the NUMA node nearest to the GPU and of the
one farthest from it, or of all nodes where the firmware does not say which is near; the copying thread runs on that
node too. GPU after GPU, because GPUs share switches and host memory; with `together` also all at once, each from its
nearest node. A sample is `copies` copies of `size` bytes in a row, timed by the GPU's own events; one sample before
them does not count. Random data: what came back from the GPU is compared byte by byte with what went out.

Manually: nvbandwidth -t host_to_device_memcpy_ce, device_to_host_memcpy_ce (under numactl --membind --cpunodebind).
Options: gpus, size (bytes), copies, repeats, nodes (a list; else nearest and farthest), far (False: nearest only),
together.
"""

import contextlib
import ctypes
import os
import statistics

from nodetune.measurements.cuda import driver_api, gpus
from nodetune.measurements.host import numa
from nodetune.measurements.host import report as reporting

SECONDS = 45.0
SCOPE = "gpus"
SHARES_CUDA = True
ORDER = 40
SUITES = {"quick": {}, "full": {"options": {"together": True}, "seconds": 120}}
TOLERANCE = {"": {"peers": 5, "baseline": 10, "drift": 3}, "both": {"peers": 10, "baseline": 15, "drift": 5}}


def measure(options, report):
    plan = Plan(options)
    found = gpus.opened(options, report)
    layout = numa.nodes()
    wanted = {gpu: places(gpu.node, sorted(layout), numa.distance, options) for gpu in found}
    rates = {}
    for node in sorted({node for chosen in wanted.values() for node in chosen}):
        rates.update(_from_node(plan, [gpu for gpu in found if node in wanted[gpu]], node, layout, report))
    _far_shares(rates, report)
    if options.get("together") and len(found) > 1:
        _together(plan, found, layout, report)


class Plan:
    def __init__(self, options):
        self.size = int(options.get("size", 128 << 20))
        self.copies = int(options.get("copies", 4))
        self.repeats = int(options.get("repeats", 8))

    def rates(self, seconds, directions=1):
        return gpus.rates(self.size * self.copies * directions, seconds)


def places(near, nodes, distance, options):
    """Return the NUMA nodes to measure a GPU from, given its own (None: unknown, so all of them)."""
    if options.get("nodes") is not None:
        return [node for node in nodes if node in options["nodes"]]
    if near not in nodes:
        return nodes
    if not options.get("far", True) or len(nodes) == 1:
        return [near]
    others = [node for node in nodes if node != near]
    return [near, max(others, key=lambda node: (distance(near, node) or 0, -others.index(node)))]


def local(gpu, node, layout):
    """Return whether a node is the nearest one; None if unknown."""
    if gpu.node is None and len(layout) > 1:
        return None
    return len(layout) == 1 or gpu.node == node


class Host:
    """Two pinned buffers on a NUMA node: random data to send, and room for what comes back.

    Must be freed. Raises MeasurementError if the node has too little memory for them.
    """

    def __init__(self, gpu, node, cpus, size):
        self.gpu, self.size, self.node = gpu, size, node
        free = numa.free_bytes(node)
        if free < 4 * size:
            text = "NUMA node {} has only {} of free memory: too little for two buffers of {}"
            raise reporting.MeasurementError(text.format(node, driver_api.in_words(free), driver_api.in_words(size)))
        numa.run_on(cpus)
        numa.allocate_on(node)
        try:
            self.out, self.back = gpu.pinned(size), gpu.pinned(size)
            randomise(self.out, size)
            self.forget()
        finally:
            numa.allocate_on(None)

    def forget(self):
        ctypes.memset(self.back, 0, self.size)

    def same(self):
        """Return whether the received data equals the sent data."""
        compare = ctypes.CDLL(None).memcmp
        compare.argtypes, compare.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int
        return compare(self.out, self.back, self.size) == 0

    def really(self):
        """Return the node that the kernel reports for the memory, or the requested one if it reports none."""
        found = numa.node_of(self.out + self.size // 2)
        return self.node if found is None else found

    def free(self):
        for address in (self.out, self.back):
            with contextlib.suppress(driver_api.CudaError):  # whatever broke the context was said before
                self.gpu.unpin(address)


def randomise(address, size):
    """Write random bytes. They repeat after an odd length, so that no power of two shifts them onto themselves."""
    block = os.urandom(min(size, (8 << 20) + 4099))
    for start in range(0, size, len(block)):
        ctypes.memmove(address + start, block, min(len(block), size - start))


def _from_node(plan, found, node, layout, report):
    """Measure each GPU in turn with the memory of one node. Return {(GPU, whether it is the nearest): {metric: GB/s}}."""
    report.step("pinning host memory on NUMA node {}".format(node))
    host, rates = _pinned_by_any(plan, found, node, layout[node], report), {}
    if host is None:
        return rates
    about = {"numa_node": host.really()}
    if host.really() != node:
        report.note("memory requested on NUMA node {} is on node {}".format(node, host.really()))
    for gpu in found:
        near = local(gpu, about["numa_node"], layout)
        with gpus.apart(report, gpu.name):
            report.step("{}: copies from and to NUMA node {}".format(gpu.name, node))
            rates[gpu.name, near] = _one(plan, gpu, host, dict(about, local=near), report)
    host.free()
    return rates


def _far_shares(rates, report):
    """Report what each GPU gets from far memory as a share of what it gets from near memory, where both are known."""
    for name in sorted({name for name, _ in rates}):
        near, far = rates.get((name, True), {}), rates.get((name, False), {})
        for metric in ("h2d", "d2h"):
            if near.get(metric) and far.get(metric):
                share = 100.0 * far[metric] / near[metric]
                report.result(name, [share], "%", metric=metric + "_far_share", local=False)


def _pinned_by_any(plan, found, node, cpus, report):
    """Pin memory of a node by the first GPU that can; return None if none can.

    A broken GPU does not stop the others.
    """
    problem = None
    for gpu in found:
        try:
            return Host(gpu, node, cpus, plan.size)
        except driver_api.CudaError as refused:
            problem = problem or refused
        except reporting.MeasurementError as fault:
            problem = fault
            break
    for gpu in found:
        report.failed(str(problem), gpu.name)
    return None


class Lane:
    """One GPU with its buffers `a` and `b`, and what can be queued on its two streams."""

    def __init__(self, plan, gpu, host, buffers):
        self.gpu, self.host, (self.a, self.b) = gpu, host, buffers
        self.copies, self.repeats = plan.copies, plan.repeats
        self.stream, self.other = gpu.stream(), gpu.stream()
        self.began, self.ended = gpu.event(), gpu.event()

    def start(self, work):
        return gpus.Repeats(self.gpu, self.stream, work, self.repeats)

    def h2d(self):
        for _ in range(self.copies):
            self.gpu.to_gpu(self.a, self.host.out, self.host.size, self.stream)

    def d2h(self):
        for _ in range(self.copies):
            self.gpu.to_host(self.host.back, self.a, self.host.size, self.stream)

    def both(self):
        """Start both directions together, and end with the slower one."""
        self.gpu.record(self.began, self.stream)
        self.gpu.after(self.other, self.began)
        for _ in range(self.copies):
            self.gpu.to_gpu(self.b, self.host.out, self.host.size, self.stream)
            self.gpu.to_host(self.host.back, self.a, self.host.size, self.other)
        self.gpu.record(self.ended, self.other)
        self.gpu.after(self.stream, self.ended)

    def forget(self):
        """Overwrite old data that could pass for a copy. `a` stays: it was found right."""
        self.host.forget()
        self.gpu.poison(self.b, self.host.size, self.stream)
        self.gpu.wait(self.stream)

    def confirm(self):
        """Raise MeasurementError if the data that came back differs from what was sent."""
        if not self.host.same():
            text = "{}: {}: random data sent to the GPU and fetched again is not the same"
            raise reporting.MeasurementError(text.format(self.gpu.name, gpus.WRONG))

    def confirm_b(self):
        self.host.forget()
        self.gpu.to_host(self.host.back, self.b, self.host.size, self.stream)
        self.gpu.wait(self.stream)
        self.confirm()


def _all_ways(lanes):
    """Return {metric: {lane: seconds of each repeat}}, all lanes at once. Raise MeasurementError for wrong data."""
    times = {}
    for metric in ("h2d", "d2h", "both"):
        if metric != "d2h":
            for lane in lanes:
                lane.forget()
        running = [lane.start(getattr(lane, metric)) for lane in lanes]
        times[metric] = {lane: repeats.seconds() for lane, repeats in zip(lanes, running)}
        if metric != "h2d":
            for lane in lanes:
                lane.confirm()
    for lane in lanes:
        lane.confirm_b()
    return times


def _tell(plan, times, about, report):
    """Report the figures. Return {metric: GB/s of the last lane}."""
    rates = {}
    for metric, by_lane in times.items():
        for lane, seconds in by_lane.items():
            samples = plan.rates(seconds, 2 if metric == "both" else 1)
            report.result(lane.gpu.name, samples, "GB/s", metric=metric, size=plan.size, checked=True, **about(lane))
            rates[metric] = statistics.median_high(samples)
    return rates


def _one(plan, gpu, host, about, report):
    with gpu.memory(plan.size, plan.size) as buffers:
        return _tell(plan, _all_ways([Lane(plan, gpu, host, buffers)]), lambda lane: about, report)


def _together(plan, found, layout, report):
    """Measure all GPUs at once, each from its nearest node."""
    with contextlib.ExitStack() as stack:
        lanes = []
        for gpu in found:
            node = gpu.node if gpu.node in layout else min(layout)
            report.step("{}: pinning host memory on NUMA node {}".format(gpu.name, node))
            host = Host(gpu, node, layout[node], plan.size)
            stack.callback(host.free)
            lanes.append(Lane(plan, gpu, host, stack.enter_context(gpu.memory(plan.size, plan.size))))
        report.step("copies from and to all GPUs at once")
        numa.run_on([cpu for cpus in layout.values() for cpu in cpus])
        about = {"together": True, "gpus": len(lanes)}
        _tell(plan, _all_ways(lanes), lambda lane: dict(about, numa_node=lane.host.node), report)
