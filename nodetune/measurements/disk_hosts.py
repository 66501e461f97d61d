"""Reads of all hosts at once from one folder, usually of a shared file system: what it gives them together.

What: metric `read_together` (GB/s): the sum over the hosts, with fio's direct reads as in disk, each host from a file of its own;
`together_share`: that sum in % of what the first host reads alone, times the hosts: below 100, the storage or the way to it is
what limits. Option `demand` (GB/s, all hosts together; --demand): the sum has to reach it. about["each"]: the part of every host.
How: all hosts write their files. Then the first host reads alone, while the others wait; then all begin at once.
Statistic: the median of the repeats.
Manually: the fio command of disk on all hosts at once, by pdsh or srun.
Options: dir (required), demand, size (bytes a host, at most), seconds (a run), repeats, jobs, depth.
"""

import os
import statistics

from nodetune.measurements.host import external_tool
from nodetune.measurements.host import report as reporting
from . import disk

SECONDS = 180.0
SCOPE = "collective"
GPUS = 0
ORDER = 112
SUITES = {}
TAKES_FOLDER = True
BY_NAME = True
TOLERANCE = {"": {"peers": 25, "baseline": 25, "drift": 5}}
SUSPECT = "the shared storage ({subject}), or the network to it"
SIZE_MATTERS = True


def measure(options, report):
    if len(report.hosts) < 2:
        raise reporting.SkipError("two hosts are needed: select more, and add --multi-node")
    folder, program = disk.folder_of(options), external_tool.need("fio", disk.PACKAGE)
    size = disk.size_for(folder, int(options.get("size", disk.WANTED)))
    report.step("writing {} MiB in {}".format(size >> 20, folder))
    handle = disk.nameless(folder)
    try:
        disk.fill(handle, size)
        _read(disk.Fio(program, handle, size, options), folder, options, report)
    finally:
        os.close(handle)


def _read(fio, folder, options, report):
    repeats = range(int(options.get("repeats", 3)))
    _meet("written", None, report)
    report.step("the first host reads alone")
    alone = [_rate(fio) for _ in repeats] if report.self == 0 else []
    _meet("read alone", None, report)
    each = []
    for number in repeats:
        report.step("all hosts read at once")
        _meet("begin {}".format(number), None, report)
        each.append(_meet("read {}".format(number), _rate(fio), report))
    if report.self == 0:
        _tell(alone, each, "{} hosts, {}".format(len(report.hosts), folder), options, {"size": fio.size}, report)


def _rate(fio):
    return fio.sample("read")["bytes"] / 1e9


def _meet(topic, mine, report):
    """Wait until all hosts are here. Return what each brought, in the order of the hosts. Raise MeasurementError."""
    report.tell(topic, mine)
    heard = report.hear_all(topic, report.left() - 1)
    found = [mine if number == report.self else heard[number] for number in range(len(report.hosts))]
    if mine is not None and not all(type(rate) is float and rate >= 0 for rate in found):
        raise reporting.MeasurementError("a host sent something that is not a rate")
    return found


def _tell(alone, each, subject, options, about, report):
    sums, one = [sum(rates) for rates in each], statistics.median_high(alone)
    about.update(hosts=len(report.hosts), alone=round(one, 3), each=[round(rate, 3) for rate in each[-1]])
    if options.get("demand"):
        about["demand"] = float(options["demand"])
    report.result(subject, sums, "GB/s", metric="read_together", **about)
    if one:
        shares = [100.0 * rate / (one * len(report.hosts)) for rate in sums]
        report.result(subject, shares, "%", metric="together_share", **about)
