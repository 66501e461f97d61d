"""Bandwidth between some hosts rail by rail, all rails at once: a ring over GPU r of each host, for every r.

What: with GPUs, NCCL's all_reduce over communicators of one GPU a host, busbw in GB/s; without, bytes over TCP in Gb/s that each
host receives from the one before it in the ring while it sends to the one after it. One figure a rail, so that a slow GPU or
adapter differs from a slow host. Two hosts are a pair; `verify --find-slow` runs many pairs at once.
How: NCCL as in training (see nccl), its data checked before. TCP: one connection a rail, CHUNK bytes at a time, each with its
checksum. A rail that moves nothing for STALLED_SECONDS is given up as a hang.
Statistic: the median of the repeats.
Manually: all_reduce_perf with NCCL_TESTS_SPLIT_MASK, or iperf3 between two hosts.
Options: over (nccl or tcp), size (bytes), gpus, nccl, repeats, seconds (TCP, a repeat), and those of pairs.
"""

import os

from . import nccl, rails_nccl, rails_tcp
from . import report as reporting

SECONDS = 60.0
SCOPE = "collective"
ORDER = 106
SUITES = {}
TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 2}}
BY_NAME = True
DRIVER = "/dev/nvidiactl"


def measure(options, report):
    if len(report.hosts) < 2:
        raise reporting.SkipError("two hosts are needed: select more")
    over = options.get("over") or ("nccl" if os.path.exists(DRIVER) else "tcp")
    if over == "nccl":
        rails_nccl.run(nccl.checked(rails_nccl.options_of(options)), report)
    elif over == "tcp":
        rails_tcp.run(options, report)
    else:
        raise reporting.MeasurementError("over {}: only nccl and tcp are possible".format(over))
