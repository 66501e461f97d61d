"""The status of hosts as NodeFeature objects of Node Feature Discovery: whether a node was examined, and its worst open fault."""

from typing import TextIO

from nodetune.api.model import SEVERITIES
from nodetune.report import nfd
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import Entry, Host, Standing


def write(found: Standing, _asked: Asked, stream: TextIO) -> None:
    """Write a list in JSON, which kubectl takes."""
    entries = found.entries_of()
    nfd.write_features(
        stream,
        "nodetune-status",
        ((host.name, _labels(host, entries.get(host.name, []))) for host in found.hosts.values()),
    )


def _labels(host: Host, entries: list[Entry]) -> dict[str, str]:
    worst = max((each.of.severity for each in entries), key=SEVERITIES.index, default=nfd.NONE)
    return {"status": host.state, "worst-fault": worst}
