"""Latency of a small RDMA write between pairs of hosts, adapter by adapter, by perftest's ib_write_lat.

What: half of the round trip of a write of BYTES, in µs, for each active port of each adapter, as rdma selects them. metric
`median`: perftest's typical latency; `p99`: exceeded by one in a hundred.
How: as rdma; each direction and repeat is one run of WRITES writes. Both programs poll, so a core is busy meanwhile.
Statistic: the median of the repeats.
Manually: numactl -N NODE -m NODE ib_write_lat -d DEVICE -i PORT -s 8 -n 20000 -F (RoCE: and -x with the index of a RoCE v2
address), and on the other host the same with the first one's address at the end
"""

import re

from nodetune.measurements.host import external_tool
from nodetune.measurements.host import report as reporting
from . import rdma

SECONDS = 300.0
SCOPE = "pair"
ORDER = 132
SUITES = {}
TOLERANCE = {
    "": {"peers": 20, "baseline": 10, "drift": 3},
    "p99": {"peers": 200, "baseline": 100, "drift": 30},
}
SUSPECT = "{subject}: PCIe (generation, ACS, IOMMU), idle states, or a longer path through the switches"
ALL_PAIRS_SECONDS = 900
BYTES = 8
WRITES = 20000
HEAD = "t_typical[usec]"


def measure(options, report):
    """Measure the latency of each pair. Options: rounds, devices, writes, repeats, gid_index, and those of pairs."""
    program = external_tool.need("ib_write_lat", rdma.PACKAGE)
    lanes = rdma.lanes(options)
    rdma.play(report, options, lanes, lambda name, port: command(program, options, name, port), _record)


def command(program, options, name, port):
    """Return one run on one port of an adapter; both sides differ only in the address at the end."""
    return [*rdma.endpoint(program, options, name, port), "-s", str(BYTES), "-n", str(options.get("writes", WRITES))]


def _record(report, subject, printed, about):
    found = [read(text) for text in printed]
    for metric in ("median", "p99"):
        samples = [each[metric] for each in found]
        report.result(subject, samples, "µs", "lower", metric=metric, **dict(about, size=BYTES))


def read(text):
    """Return {"median", "p99"} of perftest's table in µs. Raise MeasurementError."""
    row = re.search(r"^[ \t]*\d+[ \t]+\d+((?:[ \t]+[\d.]+){7})[ \t]*$", text, re.MULTILINE)
    if HEAD not in text or not row:
        raise reporting.MeasurementError("ib_write_lat printed no figures: " + rdma.explained(text.encode("utf-8")))
    _, _, typical, _, _, p99, _ = map(float, row.group(1).split())
    return {"median": typical, "p99": p99}
