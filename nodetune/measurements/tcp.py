"""TCP throughput between pairs of hosts, each direction for itself, by iperf3.

What: payload bytes of all streams together, in Gb/s, as iperf3 gives them second by second; the first second is left out.
How: the hosts of the run meet in rounds, each host in one pair at a time (option `rounds`, 0: until all have met), all
pairs of a round at once (`pairs_at_once`). Which network they take: see pairs. On one host an iperf3 server listens on a free port, only as long as it is
needed; the other host is the client and measures both directions. A link faster than 25 Gb/s takes several iperf3 side by
side: up to version 3.15 one of them uses one core.
Statistic: the median of the seconds.
Manually: iperf3 -s on one host, iperf3 -c ADDRESS -P 8 -O 1 (and with -R) on the other.
"""

import contextlib
import json
import re
import subprocess

from . import pairs, tool
from . import report as reporting

SECONDS = 180.0  # a round takes a dozen; all of ten hosts meet in nine
SCOPE = "pair"
ORDER = 120
SUITES = {}
TOLERANCE = {"": {"peers": 10, "baseline": 10, "drift": 3}}
ALL_PAIRS_SECONDS = 240
PACKAGE = "iperf3"
GBITS_A_PROCESS = 25.0
MOST_PROCESSES = 8


def measure(options, report):
    """Measure. Options: rounds, seconds (a direction), streams (of one iperf3), processes, and those of pairs."""
    program = tool.need("iperf3", PACKAGE)
    pairs.play(
        report,
        options,
        lambda: _server(program, options, report),
        lambda here, there, known, at_once: _ask(program, options, report, (here, there, known, at_once)),
    )


@contextlib.contextmanager
def _server(program, options, report):
    """Start as many iperf3 servers as the fastest link needs. Yield what the client must know."""
    quiet = {"stdout": subprocess.DEVNULL}
    running = []
    with pairs.offer(report, options) as known:
        ports = pairs.free_ports(max(_processes(options, gbits) for _, gbits in known["ways"]))
        try:
            running.extend(tool.start([program, "-s", "-4", "-p", str(port)], **quiet) for port in ports)
            pairs.wait_until_listening(ports, running, "iperf3")
            yield dict(known, ports=ports)
        finally:
            for each in running:
                tool.stop(each)


def _processes(options, gbits):
    return int(options.get("processes") or processes(gbits))


def processes(gbits):
    """Return how many iperf3 processes fill a link of so many Gb/s (None: not known)."""
    return max(1, min(MOST_PROCESSES, int(-(-(gbits or 0) // GBITS_A_PROCESS))))


def _ask(program, options, report, pair):
    here, there, known, at_once = pair
    address, gbits = pairs.way_to(known, there)
    interface = pairs.interface_to(address)
    about = {"link": gbits, "interface": interface, "mtu": _mtu(interface), "pairs_at_once": at_once}
    about.update(address=address, network=options.get("network"))
    ports = pairs.ports_of(known.get("ports"), there)
    ends = [(address, port) for port in ports[: _processes(options, gbits)]]
    for reverse, subject in ((False, "{}→{}".format(here, there)), (True, "{}→{}".format(there, here))):
        try:
            samples, more = _measure(program, options, ends, reverse)
        except reporting.MeasurementError as problem:
            report.failed(str(problem), subject)
            continue
        report.result(subject, samples, "Gb/s", **dict(about, **more))


def _measure(program, options, ends, reverse):
    """Run the clients, one for each server. Return the seconds' sums in Gb/s, and the conditions."""
    seconds, streams = int(options.get("seconds", 4)), int(options.get("streams", 8))
    given = [program, "-J", "-O", "1", "-t", str(seconds), "-P", str(streams), "--connect-timeout", "5000"]
    given += ["-R"] if reverse else []
    running = [tool.start([*given, "-c", address, "-p", str(port)]) for address, port in ends]
    try:
        answers = [read(tool.finish(each, seconds + 15, ok=(0, 1))) for each in running]
    finally:
        for each in running:
            tool.stop(each)
    samples = [sum(each) for each in zip(*(answer["gbits"] for answer in answers))]
    if not samples:
        raise reporting.MeasurementError("iperf3 gave no figures")
    retransmits = sum(answer["retransmits"] for answer in answers)
    about = {"streams": streams, "processes": len(running), "seconds": seconds, "retransmits": retransmits}
    return samples, dict(about, version=answers[0]["version"])


def read(text):
    """Parse iperf3's JSON into {"gbits": per second, "retransmits", "version"}. Raise MeasurementError."""
    try:
        found = json.loads(text)
        if "error" in found:
            raise reporting.MeasurementError("iperf3: " + str(found["error"])[:200])
        sums = [each["sum"] for each in found["intervals"]]
        return {
            "gbits": [each["bits_per_second"] / 1e9 for each in sums if not each.get("omitted")],
            "retransmits": found["end"]["sum_sent"].get("retransmits", 0),
            "version": re.sub(r"^iperf\s*", "", found["start"]["version"]),
        }
    except (ValueError, KeyError, TypeError) as problem:
        raise reporting.MeasurementError("iperf3 answered something else than expected ({!r})".format(problem))


def _mtu(interface):
    try:
        with open("/sys/class/net/{}/mtu".format(interface)) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
