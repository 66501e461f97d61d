"""How evenly the NVLinks of a GPU carry what it sends: a link that others do the work of is named.

Metric least_link, in % of what the links of its group carry on average: the bytes that NVML counts on each link while the GPU
sends to its neighbours, one after the other. Links to a switch are one group, links to one other GPU another. On a healthy
H100 all are within 0.4 % of each other. A link that is down is not counted (nvlink-down reports it). `about` has the
link, and the bytes of all in MB. GPU after GPU; what others send meanwhile counts as well.

The measurement nccl reports the same of what its ranks sent, without time of its own.

Manually: nvidia-smi nvlink -gt d before and after nvbandwidth -t device_to_device_memcpy_write_ce.
Options: gpus, size (bytes), copies.
"""

from nodetune.measurements.cuda import gpus, nvlink_bytes
from nodetune.measurements.host import report as reporting
from . import gpu_p2p

SECONDS = 45.0
SCOPE = "gpus"
SHARES_CUDA = True
GPUS = 2
ORDER = 62
SUITES = {"full": {}}
TOLERANCE = {"": {"peers": 3, "baseline": 3, "drift": 1}}
SUSPECT = "{gpu}'s NVLink {link}: its connector, its port of the switch or bridge"


def measure(options, report):
    found = gpus.opened(options, report)
    if len(found) < 2:
        raise reporting.SkipError("two GPUs are needed, found {}".format(len(found)))
    linked = [gpu for gpu in found if _counts(gpu, report)]
    ends = gpus.prepared(linked, report, "preparing", lambda gpu: gpu_p2p.End(gpu, options))
    for one in ends:
        report.step("{}: sending to each other GPU".format(one.gpu.name))
        with gpus.apart(report, one.gpu.name):
            _one(one, [end for end in ends if end is not one], int(options.get("copies", 40)), report)


def _counts(gpu, report):
    with gpus.apart(report, gpu.name, "least_link"):
        if not nvlink_bytes.active(gpu.seen):
            raise reporting.SkipError("it has no active NVLink")
        if len(nvlink_bytes.sent(gpu.seen)) < 2:
            raise reporting.SkipError("its driver does not count the bytes of each NVLink")
        return True
    return False


def _one(one, others, copies, report):
    before = nvlink_bytes.sent(one.gpu.seen)
    for other in others:
        pair = gpu_p2p.Pair(one, other, {"copies": copies, "repeats": 1})
        if pair.connect():
            pair.one_way()
    found = nvlink_bytes.least(one.gpu.seen, before)
    if not found:
        raise reporting.SkipError("what it sent went over no NVLink")
    report.result(one.gpu.name, **found)
