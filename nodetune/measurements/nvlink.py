"""How evenly the NVLinks of a GPU carry what it sends: a link that others do the work of is named.

Metric least_link, in % of what the links of its group carry on average: the bytes that NVML counts on each link while the GPU
sends to its neighbours, one after the other. Links to a switch are one group, links to one other GPU another. On a healthy
H100 all are within 0.4 % of each other. A link that is down is not counted (nvlink-down reports it). `about` has the
link, and the bytes of all in MB. GPU after GPU; what others send meanwhile counts as well.

The measurement nccl reports the same of what its ranks sent, without time of its own.

Manually: nvidia-smi nvlink -gt d before and after nvbandwidth -t device_to_device_memcpy_write_ce.
Options: gpus, size (bytes), copies.
"""

from . import gpu_p2p
from . import gpus
from . import report as reporting

SECONDS = 45.0
SCOPE = "gpus"
SHARES_CUDA = True
GPUS = 2
ORDER = 62
SUITES = {"full": {}}
TOLERANCE = {"": {"peers": 3, "baseline": 3, "drift": 1}}
SUSPECT = "{gpu}'s NVLink {link}: its connector, its port of the switch or bridge"

MAX_LINKS = 18
SENT = "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX"
MIN_BYTES = 1 << 20
"""KiB that a group of links must have carried: less is not what this program sent."""


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
        if not active(gpu.seen):
            raise reporting.SkipError("it has no active NVLink")
        if len(sent(gpu.seen)) < 2:
            raise reporting.SkipError("its driver does not count the bytes of each NVLink")
        return True
    return False


def _one(one, others, copies, report):
    before = sent(one.gpu.seen)
    for other in others:
        pair = gpu_p2p.Pair(one, other, {"copies": copies, "repeats": 1})
        if pair.connect():
            pair.one_way()
    found = least(one.gpu.seen, before)
    if not found:
        raise reporting.SkipError("what it sent went over no NVLink")
    report.result(one.gpu.name, **found)


def least(seen, before):
    """Return the figure of the link that has carried least of its share since `before`; None if no link carried anything."""
    after = sent(seen)
    carried = {link: after[link] - before[link] for link in before if link in after}
    found = [share for group in groups(seen, carried) for share in shares(group).items()]
    if not found:
        return None
    link, share = min(found, key=lambda each: each[1])
    about = {"link": link, "links": len(found), "carried": {str(each): kib >> 10 for each, kib in carried.items()}}
    return dict(about, samples=[share], unit="%", metric="least_link")


def active(seen):
    """Return the numbers of a GPU's active links."""
    return [link for link in range(MAX_LINKS) if seen.ask("nvmlDeviceGetNvLinkState", link) == 1]


def sent(seen):
    """Return {link: KiB sent since some moment} of the active links whose bytes the driver counts."""
    field = getattr(seen.library, SENT, None)
    links = active(seen)
    values = seen.ask("nvmlDeviceGetFieldValues", [(field, link) for link in links]) if field and links else None
    return {link: each.value.ullVal for link, each in zip(links, values or ()) if each.nvmlReturn == 0}


def groups(seen, carried):
    """Split {link: KiB} by what is at the other end; switches, and ends that nobody names, are one."""
    found = {}
    for link, kib in carried.items():
        kind = seen.ask("nvmlDeviceGetNvLinkRemoteDeviceType", link)
        end = seen.ask("nvmlDeviceGetNvLinkRemotePciInfo", link) if kind == 0 else None  # 0: a GPU
        found.setdefault(gpus.bdf(end.busId) if end else "", {})[link] = kib
    return list(found.values())


def shares(group):
    """Return {link: % of the average of its group}; nothing of a single link or where too little was carried."""
    average = sum(group.values()) / len(group)
    if len(group) < 2 or sum(group.values()) < MIN_BYTES:
        return {}
    return {link: 100.0 * kib / average for link, kib in group.items()}
