"""Rails over NCCL: for each GPU of this host a rank in a communicator of its own, with the same GPU of the other hosts."""

import time

from nodetune.measurements.cuda import gpus as gpu_names
from nodetune.measurements.host import process_team
from nodetune.measurements.host import report as reporting
from . import nccl_cases, nccl_ops, nccl_rank, nccl_run

SIZE = 268435456  # 256 MiB
READY = "rails ready"


def options_of(options):
    """Return the options of nccl: one collective of one size, out of place."""
    given = {
        "collectives": ["all_reduce"],
        "sizes": [int(options.get("size") or SIZE)],
        "in_place": False,
        "latency_sizes": [],
        "repeats": int(options.get("repeats") or 3),
    }
    return dict(options, **given)


def run(asked, report):
    """Measure, and record one figure for each rail, on the first host. Raise SkipError or MeasurementError."""
    here = nccl_run.look_around(asked, report)
    report.send("gpus", here["others"])
    chosen = nccl_run.chosen_gpus(asked.get("gpus"), here["gpus"])
    places = nccl_run.meet({"gpus": len(chosen), "nccl": here["nccl"], "free": 0}, report)
    counts = sorted({place["gpus"] for place in places})
    if len(counts) > 1:
        raise reporting.MeasurementError("the hosts have {} GPUs: rails need the same number".format(_either(counts)))
    ranks = len(report.hosts)
    cases = list(nccl_cases.planned(asked, ranks))
    end = time.monotonic() + report.left()
    job = dict(asked, rank=report.self, ranks=ranks, cases=cases, until=end - nccl_run.RESERVE)
    members = [
        (
            "rail {} on {}".format(rail, gpu),
            lambda out, given, gpu=gpu: nccl_rank.take_part(dict(job, gpu=gpu), out, given),
        )
        for rail, gpu in enumerate(chosen)
    ]
    report.step("starting {} rails".format(len(members)))
    with process_team.Team(members, nccl_run.Others(report).check) as team:
        for rail, content in _cases(team, end - nccl_run.LAST, report):
            _tell(rail, cases[content["number"]], content, ranks, report)


def _either(counts):
    return " or ".join(str(count) for count in counts)


def _cases(team, until, report):
    """Yield (rail, what it measured) once the rails of all hosts have met. Raise MeasurementError."""
    identities = {}
    for rail, kind, content in team.events(until):
        if kind == "step" and rail == 0:
            report.step(content)
        elif kind == "ready":
            identities[rail] = content
            if len(identities) == len(team.members):
                _hand_around(identities, team, report)
        elif kind == "case":
            yield rail, content
        elif kind == "out of time":
            raise reporting.MeasurementError("not finished in time; rail {} had no time for a case".format(rail))
    report.tell(nccl_run.DONE, True)


def _hand_around(identities, team, report):
    """Give the ranks of each rail the unique id that its rank on the first host made."""
    report.step("waiting for the rails of the other hosts")
    own = [identities[rail] for rail in range(len(team.members))]
    report.tell(READY, own)
    heard = report.hear_all(READY, report.left() - nccl_run.PATIENT)
    for member, identity in zip(team.members, own if report.self == 0 else heard[0]):
        member.send(identity)


def _tell(rail, case, found, ranks, report):
    subject = "rail {}".format(rail)
    if found["wrong"]:
        text = "{}: {} words of {}".format(gpu_names.WRONG, found["wrong"], subject)
        report.failed(text, subject)
    elif report.self == 0 and not found["wrong_everywhere"]:
        rates = [nccl_ops.bandwidths(case["name"], case["size"], each, ranks)[1] for each in found["seconds"]]
        path = found["path"]
        about = {"nodes": ranks, "over": "nccl", "nics": path["nics"]}
        report.result(subject, [round(rate, 3) for rate in rates], "GB/s", size=case["size"], **about)
