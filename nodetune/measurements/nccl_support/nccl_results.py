"""Turn results of the ranks of a host into records: one figure for each case with its conditions."""

import statistics

from nodetune.measurements.cuda import driver_api, gpus
from . import nccl_log, nccl_ops

QUIET_SETTINGS = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_HOSTID")
"""Settings that move no data."""


class Results:
    """Takes a part from every rank of this host for every case. The first rank's host reports the figures."""

    def __init__(self, cases, jobs, conditions, subject, report):
        self._cases, self._jobs, self._conditions = cases, jobs, conditions
        self._subject, self._report = subject, report
        self._parts = {}

    def take(self, member, part):
        parts = self._parts.setdefault(part["number"], {})
        parts[member] = part
        if len(parts) == len(self._jobs):
            self._complete(self._cases[part["number"]], self._parts.pop(part["number"]))

    def out_of_time(self, number):
        left = len(self._cases) - number
        self._report.note("{} of {} cases were left out: the time was over".format(left, len(self._cases)))

    def _complete(self, case, parts):
        for member, part in sorted(parts.items()):
            if part["wrong"]:
                self._wrong(case, member, part["wrong"])
        if self._report.self == 0 and not parts[0]["wrong_everywhere"]:
            self._tell(case, parts)

    def _tell(self, case, parts):
        path = nccl_log.merged([parts[member]["path"] for member in sorted(parts)])
        about = dict(self._conditions, **described(case, path, parts[0]["chosen"]))
        about.update(iterations=parts[0]["iterations"], checked=self._jobs[0]["check"], dtype=self._jobs[0]["dtype"])
        record(self._report, self._subject, case, parts[0]["seconds"], self._conditions["gpus"], about)

    def _wrong(self, case, member, count):
        job = self._jobs[member]
        text = "{}: {} words of {}{} on rank {} ({})"
        place = " in place" if case["in_place"] else ""
        words = text.format(gpus.WRONG, count, driver_api.in_words(case["size"]), place, job["rank"], job["gpu"])
        self._report.failed(words, self._subject, case["name"])


def described(case, path, chosen):
    """Return what NCCL used, for `about` of a record. NVLS counts as the transport if it was the algorithm."""
    about = {name: path[name] for name in ("transport", "via", "nics", "gdr", "nvls", "link", "channels")}
    about.update(chosen)
    if str(chosen.get("algorithm", "")).startswith("NVLS"):
        about["transport"] = "+".join(
            ["NVLS"] + [each for each in path["transport"].split("+") if each.startswith("NET")]
        )
    about["settings"] = {name: value for name, value in path["settings"].items() if name not in QUIET_SETTINGS}
    return about


def record(report, subject, case, seconds, ranks, about):
    """Record one figure: busbw of each repeat, with algbw and time; of a small message the time itself."""
    if case.get("latency"):
        about = dict(about, size=case["size"], in_place=case["in_place"])
        samples = [round(each * 1e6, 3) for each in seconds]
        report.result(subject, samples, "µs", better="lower", metric=case["name"] + "_latency", **about)
        return
    pairs = [nccl_ops.bandwidths(case["name"], case["size"], each, ranks) for each in seconds]
    middle = statistics.median_high(seconds)
    about = dict(about, size=case["size"], in_place=case["in_place"], time_us=round(middle * 1e6, 2))
    about["algbw"] = round(nccl_ops.bandwidths(case["name"], case["size"], middle, ranks)[0], 3)
    samples = [round(busbw, 3) for _, busbw in pairs]
    report.result(subject, samples, "GB/s", metric=case["name"], **about)
