"""RDMA and copies to a GPU at the same time, of adapters and GPUs below one PCIe root port: what each keeps of its own rate.

What, in % of alone: metric `rdma_kept`: what the adapter sends from host memory while the nearest GPU below the same root port gets
copies from host memory; `copies_kept`: these copies meanwhile. Both come down the link of that root port: a link that carries only
one of them leaves about half to each. Adapters without such a GPU are not measured, and a host without any is skipped.
How: as rdma, one run alone and one with pinned copies of gpu_copy, which go on until perftest has ended.
about: `shared_bridges`, the PCIe bridges that both have above them, and the rates alone (Gb/s, GB/s).
Statistic: the median of the copies; the average of perftest.
Manually: ib_write_bw as in rdma, with and without nvbandwidth -t host_to_device_memcpy_ce at the same time; lspci -tv
"""

import statistics

from nodetune.measurements.cuda import gpus
from nodetune.measurements.host import external_tool, numa, pairs
from nodetune.measurements.host import report as reporting
from . import gpu_copy, rdma, rdma_gpu

SECONDS = 600.0
SCOPE = "pair"
ORDER = 137
SUITES = {}
BY_NAME = True
TOLERANCE = {"": {"peers": 10, "baseline": 10, "drift": 4}}
ALL_PAIRS_SECONDS = 1800
RUNS = 2
SUSPECT = "the PCIe link of the root port or switch above {subject}"


def measure(options, report):
    """Measure. Options: those of rdma, size and copies of gpu_copy as copy_size and copies, libcuda."""
    program = external_tool.need("ib_write_bw", rdma.PACKAGE)
    lanes = rdma.lanes(options)
    shared = below_one_port(lanes, rdma_gpu.gpus())
    if not shared:
        raise reporting.SkipError("no GPU is below the same PCIe root port as an RDMA adapter")

    def words(name, port):
        return rdma.command(program, options, name, port)

    pairs.play(
        report,
        options,
        lambda: rdma.servers(report, options, lanes, words, RUNS),
        lambda here, there, known, _at_once: _ask(options, report, shared, words, (here, there, known)),
        both_ways=True,
    )


def below_one_port(lanes, addresses):
    """Return {port of an adapter: its conditions and those of the nearest GPU below the same PCIe root port}."""
    found = {}
    for port in sorted(lanes):
        near = rdma_gpu.nearness(port.partition("/")[0], addresses)
        index = max(range(len(addresses)), key=lambda number: near[addresses[number]], default=None)
        if index is not None and near[addresses[index]][0]:
            found[port] = dict(lanes[port], gpu=index, shared_bridges=near[addresses[index]][0])
    return found


def _ask(options, report, shared, words, pair):
    here, there, known = pair
    address, _ = pairs.way_to(known, there)
    offered = known.get("ports") if isinstance(known.get("ports"), dict) else {}
    for name, about in shared.items():
        subject = "GPU{} {} {}→{}".format(about["gpu"], name, here, there)
        if not isinstance(offered.get(name), dict):
            report.skip("{} has no active port for {}".format(there, name), subject)
            continue
        try:
            free = pairs.ports_of(offered[name].get("ports"), there)[:RUNS]
            commands = [words(name, port) + [address] for port in free]
            _one(options, report, subject, about, commands)
        except reporting.MeasurementError as problem:
            report.failed(str(problem), subject)


def _one(options, report, subject, about, commands):
    alone = rdma.read(rdma.ended(rdma.started(about, commands[0]), options))
    (gpu,) = gpus.opened(dict(options, gpus=[about["gpu"]]), report) or [None]
    if gpu is None:
        return
    with gpus.apart(report, subject):
        plan, layout = gpu_copy.Plan({"size": options.get("copy_size", 128 << 20), "repeats": 2}), numa.nodes()
        node = gpu.node if gpu.node in layout else min(layout)
        host = gpu_copy.Host(gpu, node, layout[node], plan.size)
        with gpu.memory(plan.size, plan.size) as buffers:
            lane = gpu_copy.Lane(plan, gpu, host, buffers)
            copies = _copied(plan, lane, 5)
            process = rdma.started(about, commands[1])
            try:
                meanwhile = _copied(plan, lane, 1, process)
                both = rdma.read(rdma.ended(process, options))
            finally:
                external_tool.stop(process)
        host.free()
        about = dict(about, alone=alone, copies_alone=round(copies, 3), size=options.get("size", 1 << 20))
        for metric, share in (("rdma_kept", both / alone), ("copies_kept", meanwhile / copies)):
            report.result(subject, [100.0 * share], "%", metric=metric, **about)


def _copied(plan, lane, least, process=None):
    """Copy at least `least` times, and until the program has ended. Return the median GB/s."""
    rates = []
    while len(rates) < least or (process is not None and process.poll() is None):
        rates += plan.rates(lane.start(lane.h2d).seconds())
    return statistics.median_high(rates)
