"""The status of hosts as Markdown, for job summaries and tickets. Text from a host is in code spans only."""

from typing import TextIO

from nodetune.foundation import nodeset, text
from nodetune.report.markdown import cell, code
from nodetune.report.status import text as words
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import NEVER, STALE, Line, Standing

NEXT = 1000
"""Characters of a command."""


def write(found: Standing, asked: Asked, stream: TextIO) -> None:
    """Write the unknown hosts, a table for each who acts, and what was done."""
    stream.write(f"# nodetune status\n\n{words.plain_headline(found)}\n")
    stream.write(_unknown(found))
    for who, lines in found.sections(found.lines):
        stream.write(f"\n## {words.TITLES[who]}\n\n| severity | fault | what is wrong | hosts | since | next |\n")
        stream.write("| --- | --- | --- | --- | --- | --- |\n")
        stream.writelines(_row(found, line, asked) for line in lines)
    if found.actions:
        stream.write("\n## Done\n\n")
        stream.writelines(
            f"- {text.day(each.at)}: {each.kind} {code(each.host)}{_given(' by ', each.by)}{_given(': ', each.reason)}\n"
            for each in found.actions[::-1]
        )


def _given(before: str, told: str) -> str:
    return before + code(told) if told else ""


def _unknown(found: Standing) -> str:
    rows = [
        f"- {title}: {code(nodeset.fold(each.name for each in hosts), 160)}\n"
        for state, title in ((NEVER, "never examined"), (STALE, "stale"))
        if (hosts := found.of_state(state))
    ]
    rows += [
        f"- {text.count(len(faults), 'fault')} of {code(source)} on {code(nodeset.fold(hosts), 160)}: {code(why)}\n"
        for source, why, faults, hosts in found.unread
    ]
    return "".join(["\n## Unknown\n\n", *rows]) if rows else ""


def _row(found: Standing, line: Line, asked: Asked) -> str:
    many = f"{len(line.hosts)}: " if len(line.hosts) > 1 else ""
    hosts = many + code(nodeset.fold(line.hosts), 80) if line.hosts else "the fleet"
    parts = f" +{len(line.parts)}" if line.parts else ""
    said = code(line.statement) + (
        f" {code(text.names(line.devices))}" if line.devices and len(line.hosts) == 1 else ""
    )
    then = code(asked.of(line), NEXT) if asked.of(line) else ""
    told = (code(line.of.fault) + parts, said, hosts, words.since(found, line).removeprefix("since "), then)
    return f"| {line.of.severity} | {' | '.join(map(cell, told))} |\n"
