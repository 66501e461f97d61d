"""NCCL's collectives between GPUs of one node or of several: all_reduce, all_gather, reduce_scatter, alltoall, sendrecv.

One process a GPU, as in training; no MPI: the first rank's unique id goes to the others through pipes, and from host to
host through the controller. Sizes, bandwidths and the order of things are those of nccl-tests (see nccl_ops, nccl_rank):
float32, sum, a size is that of the larger buffer, busbw in GB/s, the mean over all ranks; each collective is first
checked on small integers, every element on every rank. A figure is the median of `repeats`; each repeat is the mean of
`iterations` calls. Each figure comes with what NCCL really used for it, from its own log: the transport (P2P, SHM,
NET/IB, NET/Socket), the kind of link, the network adapters, GPUDirect RDMA, NVLS, the algorithm.

The environment stays as it is (NCCL_* variables, /etc/nccl.conf), but for NCCL_DEBUG*.

Manually: all_reduce_perf -b 64M -e 16G -f 4 -g 8 -n 20, of https://github.com/NVIDIA/nccl-tests

Small messages are measured for latency (`latency_sizes`): the time of one call in µs, metrics all_reduce_latency and
alltoall_latency, out of place. It is nccl-tests' "time": calls queued one after another, so what the CPU takes to launch one
is in it. An alltoall has no size below 16 bytes for each rank. It is one call from NCCL 2.28 on, as in nccl-tests; before, it
is a group of sends and receives.

Metric least_link: how evenly the NVLinks of each GPU carried all of this, as the measurement nvlink counts it.

Two buffers of the largest size and NCCL's own must fit into the free memory of every GPU: sizes that do not are left out.
Smaller sizes come first, so that where links are slow and the time is short, the largest are the ones that are missing.

Options: collectives, sizes (bytes), latency_collectives, latency_sizes (bytes; none where left out), in_place (true, false; both where left out), dtype (float32, bfloat16), gpus (numbers),
repeats, iterations, warmup, check, nccl (file or folder of libnccl.so.2), nccl_tests (a folder with the programs: these
measure instead, on one node).
"""

import time

from nodetune.onhost import protocol
from . import nccl_ops, nccl_rank, nccl_results, nccl_sizes, nccl_team
from . import report as reporting

SECONDS = 120.0
SCOPE = "collective"
GPUS = 2
ORDER = 100
SUITES = {
    # 0.5, 2 and 16 GiB
    "quick": {"options": {"collectives": ["all_reduce"], "sizes": [536870912, 2147483648, 17179869184]}},
    "full": {"options": {"latency_sizes": [8, 64, 512, 4096, 16384, 65536]}, "seconds": 240},
    "nccl": {"options": {"latency_sizes": [8, 64, 512, 4096, 16384, 65536]}, "seconds": 240},
}
TOLERANCE = {
    "": {"peers": 5, "baseline": 5, "drift": 1},
    "all_reduce_latency": {"peers": 20, "baseline": 20, "drift": 5},
    "alltoall_latency": {"peers": 20, "baseline": 20, "drift": 5},
    "least_link": {"peers": 3, "baseline": 3, "drift": 1},
}
SIZE_MATTERS = True
SIZES = (67108864, 268435456, 1073741824, 4294967296, 17179869184)  # 64 MiB to 16 GiB
MAX_REPEATS = 50
RESERVE = 4.0
"""Seconds before the deadline in which no case begins, so that results can still be reported."""

LAST = 1.5
"""Seconds before the deadline at which we end it ourselves and can name the missing rank."""

PATIENT = 0.5
"""The same for a host that waits for another host, so that the other host reports its own error."""

DONE = "nccl done"


def measure(options, report):
    """Measure, and record one figure for each collective, size, and out of place or in place."""
    asked = checked(options)
    if options.get("nccl_tests"):
        from . import nccl_tests

        if asked["latency_sizes"]:
            report.note("no latency of small messages: nccl-tests measure here, and only the larger sizes")
        nccl_tests.run(asked, options, report)
        return
    cases, jobs, conditions, of = prepared(dict(asked, links=True), planned, report)
    run(jobs, nccl_results.Results(cases, jobs, conditions, of, report), report, nccl_rank.take_part)


def prepared(asked, plan, report, buffers=lambda _: 2):
    """Meet the other hosts, and return (cases, a job for each GPU here, conditions, subject). Raise SkipError.

    `buffers`: the number of buffers of the largest size on each GPU, by NCCL's release.
    """
    here = look_around(asked, report)
    report.send("gpus", here["others"])
    chosen = chosen_gpus(asked.get("gpus"), here["gpus"])
    free = nccl_sizes.least(here["free"][name] for name in chosen)
    places = meet({"gpus": len(chosen), "nccl": here["nccl"], "free": free}, report)
    ranks = sum(place["gpus"] for place in places)
    if ranks < 2:
        raise reporting.SkipError("only one GPU: NCCL has no data to move between GPUs")
    first = sum(place["gpus"] for place in places[: report.self])
    free, count = nccl_sizes.least(place["free"] for place in places), buffers(here["nccl"])
    asked["sizes"] = nccl_sizes.fitting(asked["sizes"], free, count, report)
    cases = list(plan(asked, ranks))
    jobs = [dict(asked, rank=first + n, ranks=ranks, gpu=gpu, cases=cases) for n, gpu in enumerate(chosen)]
    conditions = {"nccl": here["nccl"], "library": here["library"], "gpus": ranks, "nodes": len(places)}
    return cases, jobs, conditions, subject(chosen, here["gpus"], places)


def checked(options):
    """Return the options with their defaults. Raise MeasurementError for an invalid one."""
    asked = {
        "collectives": list(nccl_ops.NAMES),
        "sizes": list(SIZES),
        "latency_collectives": list(nccl_ops.LATENCY),
        "latency_sizes": [],
        "in_place": None,
        "dtype": "float32",
        "repeats": 5,
        "iterations": 20,
        "warmup": 2,
        "check": True,
    }
    asked.update({name: value for name, value in options.items() if value is not None})
    names = list(asked["collectives"]) + list(asked["latency_collectives"])
    unknown = [name for name in names if name not in nccl_ops.NAMES]
    if unknown:
        raise reporting.MeasurementError(
            "no collective {}: there are {}".format(", ".join(unknown), ", ".join(nccl_ops.NAMES))
        )
    if asked["dtype"] not in nccl_ops.WIDTH:
        raise reporting.MeasurementError("dtype {}: only float32 and bfloat16 are supported".format(asked["dtype"]))
    if not asked["sizes"] or not _are_sizes(asked["sizes"]):
        raise reporting.MeasurementError("sizes {}: empty, or not all are numbers of bytes".format(asked["sizes"]))
    if not _are_sizes(asked["latency_sizes"]):
        text = "latency_sizes {}: not all are numbers of bytes"
        raise reporting.MeasurementError(text.format(asked["latency_sizes"]))
    if not 1 <= asked["repeats"] <= MAX_REPEATS:
        raise reporting.MeasurementError("repeats {}: 1 to {} are possible".format(asked["repeats"], MAX_REPEATS))
    return asked


def _are_sizes(given):
    return all(isinstance(size, int) and size > 0 for size in given)


def planned(asked, ranks):
    """Yield the cases in their order, which is the same on every host."""
    for size in sorted(asked["latency_sizes"]):
        for name in asked["latency_collectives"]:
            counted = nccl_ops.counted(name, size, ranks)
            if counted:
                yield {"name": name, "size": counted, "in_place": False, "latency": True}
    for size in sorted(asked["sizes"]):
        for name in asked["collectives"]:
            for in_place in (False, True):
                counted = nccl_ops.counted(name, size, ranks)
                if counted and (not in_place or name in nccl_ops.IN_PLACE) and asked["in_place"] in (None, in_place):
                    yield {"name": name, "size": counted, "in_place": in_place}


def chosen_gpus(wanted, there):
    """Return the names of the GPUs to use. Raise MeasurementError."""
    if wanted is None:
        return list(there)
    names = ["GPU{}".format(str(each).upper().replace("GPU", "")) for each in wanted]
    missing = [name for name in names if name not in there]
    if missing:
        raise reporting.MeasurementError("{} not found: there are {}".format(", ".join(missing), ", ".join(there)))
    return names


def subject(chosen, there, places):
    """Return `8 GPUs`, `GPU0+GPU3`, or `2 nodes of 8 GPUs`."""
    if len(places) > 1:
        counts = "/".join(str(count) for count in sorted({place["gpus"] for place in places}))
        return "{} nodes of {} GPU{}".format(len(places), counts, "" if counts == "1" else "s")
    return "{} GPUs".format(len(chosen)) if list(chosen) == list(there) else "+".join(chosen)


def look_around(asked, report):
    """Return the GPUs and the library of this host."""
    run = [("", lambda out, _: nccl_rank.look_around(asked, out))]
    with nccl_team.Team(run) as team:
        for _, kind, content in team.events(time.monotonic() + report.left() - LAST):
            if kind == "found":
                return content
    raise reporting.MeasurementError("could not query NCCL and the GPUs")


def meet(own, report):
    """Exchange what each host has, in their order. Raise MeasurementError if a host is missing or its NCCL differs."""
    if len(report.hosts) == 1:
        return [own]
    report.step("waiting for the other hosts")
    report.tell("nccl here", own)
    places = report.hear_all("nccl here", report.left() - PATIENT)
    places[report.self] = own
    versions = {places[index]["nccl"] for index in places}
    if len(versions) > 1:
        each = ["{} has {}".format(host, places[index]["nccl"]) for index, host in enumerate(report.hosts)]
        raise reporting.MeasurementError(
            "the hosts have different releases of NCCL, which may be incompatible: " + ", ".join(each)
        )
    return [places[index] for index in range(len(report.hosts))]


def run(jobs, results, report, take_part):
    """Start a rank on each GPU (`take_part` runs in it), distribute the unique id, and collect the results."""
    end = time.monotonic() + report.left()
    ranks = [
        (
            "rank {} on {}".format(job["rank"], job["gpu"]),
            lambda out, given, job=dict(job, until=end - RESERVE): take_part(job, out, given),
        )
        for job in jobs
    ]
    report.step("starting {} ranks".format(len(jobs)))
    with nccl_team.Team(ranks, Others(report).check if len(report.hosts) > 1 else None) as team:
        for number, kind, content in conducted(team, end - LAST, report):
            if kind == "case":
                results.take(number, content)
            elif kind == "links":
                report.result(content[0], **content[1])
            elif kind == "out of time" and number == 0:
                results.out_of_time(content)


def conducted(team, until, report):
    """Yield what the ranks of this host report once they have met those of other hosts. Raise MeasurementError."""
    waiting, identity = len(team.members), None
    for number, kind, content in team.events(until):
        if kind == "step":
            if number == 0:
                report.step(content)
        elif kind == "ready":
            waiting, identity = waiting - 1, content or identity
            if not waiting:
                hand_around(identity, team, report)
        else:
            yield number, kind, content
    if len(report.hosts) > 1:
        report.tell(DONE, True)


def hand_around(identity, team, report):
    """Exchange the unique id once all ranks of all hosts have their GPU."""
    if len(report.hosts) > 1:
        report.step("waiting for the ranks of the other hosts")
        report.tell("nccl ready", identity)
        heard = report.hear_all("nccl ready", report.left() - PATIENT)
        identity = identity or next(each for each in heard.values() if each)
    for member in team.members:
        member.send(identity)


class Others:
    """The other hosts of the run while our ranks work with theirs. A host that has finished may end before us."""

    def __init__(self, report):
        self._report = report
        self._at_work = [index for index in range(len(report.hosts)) if index != report.self]

    def check(self):
        """Raise the error of another host as soon as its part has ended too early."""
        for index in list(self._at_work):
            why = self._told(protocol.ENDED, index)
            if why is not None:
                self._at_work.remove(index)
                if not self._told(DONE, index):
                    raise reporting.ended(self._report.hosts[index], why)

    def _told(self, topic, index):
        try:
            return self._report.hear(topic, 0.0, index)
        except (reporting.SkipError, reporting.MeasurementError):  # it has said nothing of the kind
            return None
