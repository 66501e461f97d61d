"""The status of hosts as rows, one for each host and fault, and one for each unknown host: lines, or CSV with column names."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from nodetune.foundation import text
from nodetune.history.closing import Open
from nodetune.report import rows
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import NEVER, STALE, Standing, named

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
    for told in _cells(found, asked):
        yield [told.get(name, "") for name in HEAD]


def _cells(found: Standing, asked: Asked) -> Iterator[dict[str, str]]:
    for state in (NEVER, STALE):
        for each in found.of_state(state):
            last = text.day(each.last) if each.last else ""
            why = f"last examined {last}" if last else "nobody examined it"
            audit = asked.verb("audit", [each.name])
            yield {"host": each.name, "status": state, "since": last, "next": audit, "reason": why}
    for host, entries in found.entries_of().items():
        for entry in entries:
            then = entry.of.next
            command = asked.command(then, [host] if then.hosts else ()) if then.verb else then.text
            unproven = entry.known.unproven
            why = f"not judged again since {text.day(unproven)}" if unproven else entry.of.reason
            yield {"host": host, **_fault(entry.known), "next": command, "reason": why}
    for each in found.hosts.values():
        for (source, fault), why in each.unjudged.items():
            yield {"host": each.name, "status": "unknown", "fault": fault, "source": source, "reason": why}
    for one in found.waived:
        for host in one.conclusion.hosts or ("",):
            yield {"host": host, **_fault(one), "reason": one.conclusion.reason}


def _fault(known: Open) -> dict[str, str]:
    of = known.conclusion
    return {
        "status": of.state,
        "severity": of.severity,
        "fault": of.fault,
        "source": of.source,
        "device": named(of),
        "statement": of.statement,
        "observed": "" if of.observed is None else text.value(of.observed),
        "wanted": "" if of.wanted is None else text.value(of.wanted),
        "since": text.day(known.since),
        "who": of.who,
    }
