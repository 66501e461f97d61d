"""The status of hosts as one HTML page that opens from disk. No script."""

from typing import TextIO

from nodetune.foundation import nodeset, text
from nodetune.report.html import plain
from nodetune.report.status import text as words
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import NEVER, STALE, Line, Standing

WHOLE = 100_000
"""Characters of a list of hosts."""


def write(found: Standing, asked: Asked, stream: TextIO) -> None:
    """Write the page."""
    unknown = [(state, why, _hosts(each.name for each in found.of_state(state)), asked.verb("audit", [each.name for each in found.of_state(state)]))
               for state, why in ((NEVER, "nobody examined them"), (STALE, "not examined for a while")) if found.of_state(state)]  # fmt: skip
    unknown += [
        ("unknown", f"{text.count(len(faults), 'fault')} of {text.plain(source)}: {text.plain(why)}", _hosts(hosts), "")
        for source, why, faults, hosts in found.unread
    ]
    plain.write(
        stream,
        "status.html",
        title=text.plain(found.host) or "fleet",
        headline=words.plain_headline(found),
        unknown=unknown,
        sections=[(words.TITLES[who], lines) for who, lines in found.sections(found.lines)],
        hosts=lambda line: _hosts(line.hosts) if line.hosts else "the fleet",
        said=_said,
        since=lambda line: words.since(found, line),
        next=asked.of,
        actions=found.actions[::-1],
        examined=[(host, sorted(host.examined.items())) for host in found.hosts.values()],
        plain=text.plain,
        day=text.day,
    )


def _hosts(names: object) -> str:
    return text.plain(nodeset.fold(names), WHOLE)  # type: ignore[arg-type]


def _said(line: Line) -> str:
    return (
        f"{text.names(line.devices)}: {text.plain(line.statement)}"
        if line.devices and len(line.hosts) == 1
        else text.plain(line.statement)
    )
