"""The status of hosts in Prometheus' text format, for node-exporter's textfile collector."""

from collections import Counter
from collections.abc import Iterator
from typing import TextIO

from nodetune.api.model import SEVERITIES
from nodetune.report.prometheus import Sample, label, write_samples
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import HOST_STATES, Standing, named

HELP = {
    "timestamp_seconds": "Time of this status.",
    "hosts": "Hosts by state: examined, unknown in part, stale, never examined.",
    "examined_timestamp_seconds": "Time of the last examination of the host by each source.",
    "open_faults": "Open faults of the host by severity; each device counts.",
    "fault": "1 for each open fault of each host and device.",
    "drained": "1 for a host that was drained and not resumed.",
}


def write(found: Standing, _asked: Asked, stream: TextIO) -> None:
    """Write the samples by metric, as the format requires."""
    write_samples(stream, "nodetune_status", HELP, _samples(found))


def _samples(found: Standing) -> Iterator[Sample]:
    yield "timestamp_seconds", {}, found.limits.now
    states = Counter(each.state for each in found.hosts.values())
    yield from (("hosts", {"state": state}, states[state]) for state in HOST_STATES)
    entries = found.entries_of()
    for host in found.hosts.values():
        own = {"host": label(host.name)}
        counts = Counter(each.of.severity for each in entries.get(host.name, ()))
        yield from (("open_faults", {**own, "severity": each}, counts[each]) for each in SEVERITIES)
        yield from (
            ("examined_timestamp_seconds", {**own, "source": label(one)}, at) for one, at in host.examined.items()
        )
        yield "drained", own, host.drained > 0
    for name, of_host in entries.items():
        for each in (entry.of for entry in of_host):
            about = {"fault": label(each.fault), "source": label(each.source), "device": label(named(each))}
            yield "fault", {"host": label(name), **about, "severity": each.severity, "who": each.who}, 1
