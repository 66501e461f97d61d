"""A run of NCCL: what each host has, a rank on each GPU, the unique id for all of them, and what they report."""

import time

from nodetune.onhost import protocol
from nodetune.measurements.host import process_team
from nodetune.measurements.host import report as reporting
from . import nccl_rank, nccl_sizes

RESERVE = 4.0
"""Seconds before the deadline in which no case begins, so that results can still be reported."""

LAST = 1.5
"""Seconds before the deadline at which we end it ourselves and can name the missing rank."""

PATIENT = 0.5
"""The same for a host that waits for another host, so that the other host reports its own error."""

DONE = "nccl done"


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


def look_around(asked, report):
    """Return the GPUs and the library of this host."""
    run = [("", lambda out, _: nccl_rank.look_around(asked, out))]
    with process_team.Team(run) as team:
        for _, kind, content in team.events(time.monotonic() + report.left() - LAST):
            if kind == "found":
                return content
    raise reporting.MeasurementError("could not query NCCL and the GPUs")


def chosen_gpus(wanted, there):
    """Return the names of the GPUs to use. Raise MeasurementError."""
    if wanted is None:
        return list(there)
    names = ["GPU{}".format(str(each).upper().replace("GPU", "")) for each in wanted]
    missing = [name for name in names if name not in there]
    if missing:
        raise reporting.MeasurementError("{} not found: there are {}".format(", ".join(missing), ", ".join(there)))
    return names


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


def subject(chosen, there, places):
    """Return `8 GPUs`, `GPU0+GPU3`, or `2 nodes of 8 GPUs`."""
    if len(places) > 1:
        counts = "/".join(str(count) for count in sorted({place["gpus"] for place in places}))
        return "{} nodes of {} GPU{}".format(len(places), counts, "" if counts == "1" else "s")
    return "{} GPUs".format(len(chosen)) if list(chosen) == list(there) else "+".join(chosen)


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
    with process_team.Team(ranks, Others(report).check if len(report.hosts) > 1 else None) as team:
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
