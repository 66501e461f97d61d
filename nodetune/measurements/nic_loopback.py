"""RDMA write bandwidth of each port of a host's adapters to itself, by perftest's ib_write_bw: no second host, no switch.

What: as rdma, in Gb/s, but server and client are on this host, on the same port. What it sends crosses the adapter, and its PCIe link
once each way: the limit is the port's rate, or what the link carries if that is less. metric `gpu`: the buffers are in the memory of
the GPUs nearest to it (see rdma_gpu), where perftest was built with CUDA. metric `mtu`: the bytes of a packet, where there are several
ports: a smaller one has another setting than the others.
How: one port after the other. A port that is not active has failed if more than half of its kind (model, link layer) are
active, else it is skipped: it may have no cable on purpose. about: `usual_rate` is that of most ports of its kind, where this port alone has a lower one.
Statistic: the median of the repeats.
Manually: ib_write_bw -d DEVICE -i PORT -s 1048576 -q 2 -D 3 -F --report_gbits & and the same with 127.0.0.1 at the end. NCCL through
the adapters of one host: nodetune verify --only nccl --env NCCL_P2P_DISABLE=1 --env NCCL_SHM_DISABLE=1
"""

import collections
import os
import re
import subprocess

from nodetune.onhost import files
from nodetune.measurements.host import external_tool, pairs, pcie
from nodetune.measurements.host import report as reporting
from . import rdma, rdma_gpu

SECONDS = 300.0
SCOPE = "host"
ORDER = 36
SUITES = {}
TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 1}}
SIZE_MATTERS = True
SUSPECT = "{subject} ({bdf}): its PCIe link, its settings, or the rate at which its link came up"
REPEATS = 2
HERE = "127.0.0.1"
MTU = re.compile(r"^\s*Mtu\s*:\s*(\d+)\[B\]", re.MULTILINE)


def measure(options, report):
    """Measure. Options: devices, size (bytes), queue_pairs, seconds (a run), repeats, gid_index, dmabuf (as rdma_gpu)."""
    program = external_tool.need("ib_write_bw", rdma.PACKAGE)
    every = {name: dict(about, kind=_kind(name, about)) for name, about in rdma.every_port(options).items()}
    if not every:
        raise reporting.SkipError("no RDMA adapter on this host")
    active = {name: _conditions(name, about) for name, about in every.items() if about["state"] == rdma.ACTIVE}
    for name in sorted(set(every) - set(active)):
        _tell_down(report, every, name)
    for name, rate in usual_rates(every).items():
        active[name]["usual_rate"] = rate
    mtus = {name: _measure(report, options, (name, about), program) for name, about in sorted(active.items())}
    if sum(mtu is not None for mtu in mtus.values()) > 1:
        for name, mtu in mtus.items():
            if mtu is not None:
                report.result(name, [mtu], "bytes", metric="mtu", bdf=active[name]["bdf"], layer=active[name]["layer"])
    for name, about in _of_gpus(options, program, active).items():
        _measure(report, options, (name, about), program)


def _kind(name, about):
    model = files.text("{}/{}/hca_type".format(rdma.CLASS, name.partition("/")[0]))
    return model, about["layer"], about["software"]


def _conditions(name, about):
    place = os.path.realpath("{}/{}/device".format(rdma.CLASS, name.partition("/")[0]))
    found = {key: about[key] for key in ("rate", "layer", "software", "bdf")}
    return dict(found, adapter=name, pcie=None if about["software"] else pcie.link(place))


def _tell_down(report, every, name):
    """Report a port that is not active: as a fault if most of its kind are."""
    about = every[name]
    alike = [each["state"] == rdma.ACTIVE for each in every.values() if each["kind"] == about["kind"]]
    told = "{} ({}) is {}".format(name, about["bdf"] or "software", about["state"] or "in an unknown state")
    if 2 * sum(alike) > len(alike):
        report.failed("{}, {} of {} of its kind are active".format(told, sum(alike), len(alike)), name)
    else:
        report.skip(told, name)


def usual_rates(every):
    """Return {port: the rate of most active ports of its kind}, of those that alone have a lower one: several have another role."""
    found = {}
    for kind in {about["kind"] for about in every.values()}:
        rates = {name: each["rate"] for name, each in every.items() if each["kind"] == kind and each["rate"]}
        rates = {name: rate for name, rate in rates.items() if every[name]["state"] == rdma.ACTIVE}
        counts = collections.Counter(rates.values())
        usual = max(counts, key=lambda rate: (counts[rate], rate), default=0)
        found.update({name: usual for name, rate in rates.items() if rate < usual and counts[rate] == 1})
    return found


def _of_gpus(options, program, active):
    """Return {"GPU0 mlx5_0/1": its conditions} of adapters and the GPUs near to them, if perftest can use them."""
    near = rdma_gpu.lanes(
        {name: about for name, about in active.items() if not about["software"]}, rdma_gpu.gpus(), False
    )
    if not near or b"--use_cuda" not in rdma_gpu.help_of(program):
        return {}
    dmabuf = rdma_gpu.by_dmabuf(options)
    return {name: dict(about, dmabuf=dmabuf) for name, about in near.items()}


def _measure(report, options, lane, program):
    """Report the bandwidth of a lane. Return its MTU in bytes, or None if perftest did not run."""
    subject, about = lane
    metric = "gpu" if "gpu" in about else "nic_loopback"
    printed = []
    report.step(subject)
    try:
        printed += [_run(options, program, about) for _ in range(int(options.get("repeats", REPEATS)))]
        about = dict(about, size=options.get("size", 1 << 20))
        report.result(subject, [rdma.read(text) for text in printed], "Gb/s", metric=metric, **about)
    except reporting.MeasurementError as problem:
        report.failed("{} ({}): {}".format(subject, about["bdf"] or "software", problem), subject, metric)
    mtu = MTU.search(printed[0]) if printed else None
    return int(mtu.group(1)) if mtu else None


def _run(options, program, about):
    """Run a server and a client on a port. Return the client's output. Raise MeasurementError."""
    (port,) = pairs.free_ports(1)
    command = rdma.command(program, options, about["adapter"], port)
    if "gpu" in about:
        command = rdma_gpu.command(program, options, about, port, about["dmabuf"])
    rdma.stay_near(about["adapter"])
    server = external_tool.start(command, stdout=subprocess.DEVNULL)
    try:
        pairs.wait_until_listening([port], [server], "perftest", rdma.explained)
        return rdma.ended(rdma.started(about, [*command, HERE]), options)
    finally:
        external_tool.stop(server)
