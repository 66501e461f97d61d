"""An audit as one line for each finding, for grep, awk and cut: host, severity, check, title, value; a tab after each.

Unknown findings have the severity `unknown`. An unreachable host has one line with `not-reached`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from nodetune.api.model import Finding, HostResult
from nodetune.audit.summary import worded
from nodetune.report import rows

NOT_REACHED = "not-reached"


def write(results: Iterable[HostResult], stream: TextIO) -> None:
    """Write the lines by host, the most severe finding first."""
    rows.write(stream, "lines", (), ((each.host, *cells) for each in results for cells in _rows(each)))


def _rows(result: HostResult) -> Iterator[Sequence[str]]:
    if result.state != "ok":
        yield NOT_REACHED, "-", result.state, result.message
    for found in ordered(worded(result)):
        if found.status == "fail":
            yield found.severity, found.check, found.title, f"{found.observed}, wanted {found.wanted}"
        elif found.status == "unknown":
            yield "unknown", found.check, found.title, found.reason


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by status and severity, the most severe failure first."""
    return sorted(findings, key=lambda each: (each.status, *each.rank, each.check))
