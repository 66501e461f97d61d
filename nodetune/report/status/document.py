"""The status of hosts as JSON data: the published form (schema nodetune.status/1)."""

from collections import Counter
from dataclasses import asdict
from typing import Any, TextIO

from nodetune.api import conclusion_json
from nodetune.api.model import SEVERITIES
from nodetune.foundation import json_document
from nodetune.history.closing import Open
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import HOST_STATES, Entry, Line, Standing

SCHEMA = "nodetune.status/1"


def write(found: Standing, asked: Asked, stream: TextIO) -> None:
    """Write one object: equal faults with their hosts as `lines`, and each fault as `open`."""
    stream.write(json_document.text(document(found, asked)))


def document(found: Standing, asked: Asked) -> dict[str, Any]:
    """Return the document."""
    limits = found.limits
    return {
        **json_document.head(SCHEMA),
        "time": limits.now,
        "host": found.host or None,
        "stale_seconds": limits.stale,
        "since": limits.now - limits.since,
        "fail_on": limits.fail_on,
        "summary": _summary(found),
        "unknown": [
            {"source": source, "reason": why, "faults": faults, "hosts": hosts}
            for source, why, faults, hosts in found.unread
        ],
        "lines": [_line(each, asked) for each in found.lines],
        "hosts": [
            {"name": each.name, "state": each.state, "examined": dict(each.examined), "drained": each.drained or None}
            for each in found.hosts.values()
        ],
        "open": [_entry(each) for each in found.entries],
        "waived": [_open(each) for each in found.waived],
        "actions": [asdict(each) for each in found.actions],
    }


def _summary(found: Standing) -> dict[str, Any]:
    states = Counter(each.state for each in found.hosts.values())
    return {
        "hosts": len(found.hosts),
        **{state: states[state] for state in HOST_STATES},
        "open": {each: found.open[each] for each in reversed(SEVERITIES) if found.open[each]},
        "waived": len(found.waived),
        "drained": sum(1 for each in found.hosts.values() if each.drained),
        "exit": found.code,
    }


def _line(line: Line, asked: Asked) -> dict[str, Any]:
    return {
        "who": line.of.who,
        "severity": line.of.severity,
        "fault": line.of.fault,
        "sources": sorted({each.of.source for each in line.entries}),
        "statement": line.statement,
        "devices": list(line.devices) if len(line.hosts) == 1 else [],
        "hosts": list(line.hosts),
        "since": line.since,
        "unproven": line.unproven or None,
        "explains": list(line.parts),
        "next": asked.of(line),
    }


def _open(known: Open) -> dict[str, Any]:
    return {
        **conclusion_json.data(known.conclusion), "severity": known.conclusion.severity, "since": known.since,
        "unproven": known.unproven or None,
    }  # fmt: skip


def _entry(entry: Entry) -> dict[str, Any]:
    return {**_open(entry.known), "explains": [_open(each) for each in entry.parts]}
