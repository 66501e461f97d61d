"""TCP throughput between pairs of hosts, each direction for itself, by iperf3.

What: payload bytes in Gb/s, as iperf3 gives them second by second; the first second is left out. `one_stream`: of a single
connection, which windows, one core and the delay limit; `tcp`: of STREAMS[-1] together.
How: the hosts of the run meet in rounds, each host in one pair at a time (option `rounds`, 0: until all have met), all
pairs of a round at once (`pairs_at_once`). Which network they take: see pairs. On one host an iperf3 server listens on a free port, only as long as it is
needed; the other host is the client and measures both directions. A link faster than 25 Gb/s takes several iperf3 side by
side: up to version 3.15 one of them uses one core.
Statistic: the median of the seconds. about: `retransmits` and their share of all segments (`retransmitted`), as the
sender counted them, the sender's congestion control, and what the client's interface dropped meanwhile (`drops`).
Manually: iperf3 -s on one host, iperf3 -c ADDRESS -P 1 -O 1 (also -P 16, and with -R) on the other.
"""

import contextlib
import json
import os
import re
import subprocess

from nodetune.onhost import files
from nodetune.measurements.host import external_tool, pairs
from nodetune.measurements.host import report as reporting

SECONDS = 240.0  # a round takes two dozen; all of ten hosts meet in nine
SCOPE = "pair"
ORDER = 120
SUITES = {}
TOLERANCE = {
    "": {"peers": 10, "baseline": 10, "drift": 3},
    "one_stream": {"peers": 25, "baseline": 25, "drift": 10},
}
ALL_PAIRS_SECONDS = 360
PACKAGE = "iperf3"
GBITS_A_PROCESS = 25.0
MAX_PROCESSES = 8
STREAMS = (1, 16)
MSS = 1448
"""Default if iperf3 does not report it: for an MTU of 1500."""
MTU, ADAPTER = "/sys/class/net/{}/mtu", "/sys/class/net/{}/device"
"""Links without an adapter (a bridge, a veth) state a speed that means nothing."""
DROPS = ("rx_dropped", "rx_missed_errors", "rx_crc_errors", "rx_fifo_errors", "tx_dropped")


def measure(options, report):
    """Measure.

    Options: rounds, seconds (a direction), streams (in total: a number, or a list of numbers to measure), processes,
    and those of pairs.
    """
    program = external_tool.need("iperf3", PACKAGE)
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
            running.extend(external_tool.start([program, "-s", "-4", "-p", str(port)], **quiet) for port in ports)
            pairs.wait_until_listening(ports, running, "iperf3")
            yield dict(known, ports=ports)
        finally:
            for each in running:
                external_tool.stop(each)


def _processes(options, gbits):
    return int(options.get("processes") or processes(gbits))


def processes(gbits):
    """Return the number of iperf3 processes that fill a link of this many Gb/s (None: unknown)."""
    return max(1, min(MAX_PROCESSES, int(-(-(gbits or 0) // GBITS_A_PROCESS))))


def _ask(program, options, report, pair):
    here, there, known, at_once = pair
    address, gbits = pairs.way_to(known, there)
    interface = pairs.interface_to(address)
    about = {
        "link": gbits,
        "interface": interface,
        "mtu": files.number(MTU.format(interface)),
        "adapter": os.path.exists(ADAPTER.format(interface)),
        "pairs_at_once": at_once,
    }
    about.update(address=address, network=options.get("network"))
    ports = pairs.ports_of(known.get("ports"), there)
    ends = [(address, port) for port in ports[: _processes(options, gbits)]]
    for streams in streams_of(options):
        for reverse, subject in ((False, "{}→{}".format(here, there)), (True, "{}→{}".format(there, here))):
            metric, before = "one_stream" if streams == 1 else "tcp", drops(interface)
            try:
                samples, more = _measure(program, options, ends[:streams], (streams, reverse))
            except reporting.MeasurementError as problem:
                report.failed(str(problem), subject, metric)
                continue
            more["drops"] = {name: count - before[name] for name, count in drops(interface).items() if name in before}
            report.result(subject, samples, "Gb/s", metric=metric, **dict(about, **more))


def streams_of(options):
    """Return the numbers of streams to measure with."""
    given = options.get("streams") or STREAMS
    return [given] if isinstance(given, int) else list(given)


def drops(interface):
    """Return what an interface has dropped so far, by the kernel's counters."""
    found = {name: files.number("/sys/class/net/{}/statistics/{}".format(interface, name)) for name in DROPS}
    return {name: count for name, count in found.items() if count is not None}


def _measure(program, options, ends, way):
    """Run the clients, one for each server. Return the seconds' sums in Gb/s, and the conditions."""
    seconds, (streams, reverse) = int(options.get("seconds", 4)), way
    given = [program, "-J", "-O", "1", "-t", str(seconds), "--connect-timeout", "5000"] + (["-R"] if reverse else [])
    shares = [streams // len(ends) + (number < streams % len(ends)) for number in range(len(ends))]
    commands = [[*given, "-P", str(share), "-c", end[0], "-p", str(end[1])] for share, end in zip(shares, ends)]
    running = [external_tool.start(each) for each in commands]
    try:
        answers = [read(external_tool.finish(each, seconds + 15, ok=(0, 1))) for each in running]
    finally:
        for each in running:
            external_tool.stop(each)
    samples = [sum(each) for each in zip(*(answer["gbits"] for answer in answers))]
    if not samples:
        raise reporting.MeasurementError("iperf3 printed no figures")
    return samples, dict(lost(answers), streams=streams, processes=len(running), seconds=seconds)


def lost(answers):
    """Return what the senders retransmitted: {"retransmits", "retransmitted" (share), "congestion", "version"}."""
    again, segments = (sum(each[name] for each in answers) for name in ("retransmits", "segments"))
    found = {"retransmits": again, "version": answers[0]["version"], "congestion": answers[0]["congestion"]}
    return dict(found, retransmitted=round(again / segments, 6)) if segments else found


def read(text):
    """Parse iperf3's JSON into {"gbits": per second, "retransmits", "segments", …}. Raise MeasurementError."""
    try:
        found = json.loads(text)
        if "error" in found:
            raise reporting.MeasurementError("iperf3: " + str(found["error"])[:200])
        sums, sent = [each["sum"] for each in found["intervals"]], found["end"]["sum_sent"]
        return {
            "gbits": [each["bits_per_second"] / 1e9 for each in sums if not each.get("omitted")],
            "retransmits": sent.get("retransmits", 0),
            "segments": sent.get("bytes", 0) / (found["start"].get("tcp_mss_default") or MSS),
            "congestion": found["end"].get("sender_tcp_congestion"),
            "version": re.sub(r"^iperf\s*", "", found["start"]["version"]),
        }
    except (ValueError, KeyError, TypeError) as problem:
        raise reporting.MeasurementError("unexpected answer of iperf3 ({!r})".format(problem))
