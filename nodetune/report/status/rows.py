"""The status of hosts as rows, one for each host and fault, and one for each unknown host: lines, or CSV with column names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from nodetune.foundation import text
from nodetune.report import rows
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import NEVER, STALE, Entry, Standing, named

HEAD = (
    "host", "status", "severity", "fault", "source", "device", "statement", "observed", "wanted", "since", "who", "next", "reason",
)  # fmt: skip


def write(found: Standing, asked: Asked, output_format: str, stream: TextIO) -> None:
    """Write the rows by host, the worst fault first."""
    if output_format == "lines":
        rows.write(stream, output_format, (), (_short(row) for row in _rows(found, asked)))
    else:
        rows.write(stream, output_format, HEAD, _rows(found, asked))


def _short(row: Sequence[str]) -> Sequence[str]:
    """Return host, severity (or why it has none), fault, device and what is wrong, as the lines of an audit."""
    host, status, severity, fault, _, device, statement, *_, reason = row
    return host, severity if status == "open" else status, fault or "-", device, statement or reason


def _rows(found: Standing, asked: Asked) -> Iterator[Sequence[str]]:
    for state in (NEVER, STALE):
        for each in found.of_state(state):
            last = text.day(each.last) if each.last else ""
            why = "last examined" if last else "nobody examined it"
            yield (
                each.name,
                state,
                "",
                "",
                "",
                "",
                "",
                "",
                "",
                last,
                "",
                asked.verb("audit", [each.name]),
                f"{why} {last}".rstrip(),
            )
    for host, entries in found.entries_of().items():
        for entry in entries:
            yield host, *_cells(host, entry, asked)
    for each in found.hosts.values():
        for (source, fault), why in each.unjudged.items():
            yield each.name, "unknown", "", fault, source, "", "", "", "", "", "", "", why
    for one in found.waived:
        of = one.conclusion
        for host in of.hosts or ("",):
            told = (
                of.statement,
                text.value(of.observed),
                text.value(of.wanted),
                text.day(one.since),
                of.who,
                "",
                of.reason,
            )
            yield host, of.state, of.severity, of.fault, of.source, named(of), *told


def _cells(host: str, entry: Entry, asked: Asked) -> Sequence[str]:
    of = entry.of
    values = ("" if one is None else text.value(one) for one in (of.observed, of.wanted))
    then = asked.command(of.next, [host] if of.next.hosts else ()) if of.next.verb else of.next.text
    reason = f"not judged again since {text.day(entry.known.unproven)}" if entry.known.unproven else of.reason
    about = of.severity, of.fault, of.source, named(of), of.statement
    return "open", *about, *values, text.day(entry.known.since), of.who, then, reason
