"""An audit as a table for spreadsheets: one row for each failed, waived or unknown finding and each lost host."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from nodetune.api.model import Check, HostResult
from nodetune.audit.summary import worded
from nodetune.report import rows
from nodetune.report.areas import area
from nodetune.report.lines import NOT_REACHED, ordered

HEAD = ("host", "status", "severity", "check", "area", "title", "observed", "wanted", "reason")
STATUSES = ("fail", "unknown", "waived")


def write(results: Iterable[HostResult], stream: TextIO, checks: Mapping[str, Check]) -> None:
    """Write the rows by host, the most severe failure first."""
    rows.write(stream, "csv", HEAD, ((each.host, *cells) for each in results for cells in _rows(each, checks)))


def _rows(result: HostResult, checks: Mapping[str, Check]) -> Iterator[Sequence[str]]:
    if result.state != "ok":
        yield NOT_REACHED, "", "", "", result.state, "", "", result.message
    for each in ordered(found for found in worded(result) if found.status in STATUSES):
        judged = (each.status, each.severity, each.check, area(each, checks))
        yield *judged, each.title, each.observed, each.wanted, each.reason
