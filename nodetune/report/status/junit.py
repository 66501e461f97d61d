"""The status of hosts as JUnit XML: a suite for each host, a case for each fault, and one for its examination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from nodetune.api.conclusion import Conclusion
from nodetune.api.model import at_least
from nodetune.foundation import text
from nodetune.report.junit import escape
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import FRESH, NEVER, UNKNOWN, Entry, Host, Standing, named


def write(found: Standing, asked: Asked, stream: TextIO) -> None:
    """Write a host at a time. Faults below --fail-on fail no case but are in its output."""
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="nodetune status">\n')
    entries = found.entries_of()
    waived: dict[str, list[Conclusion]] = {}
    for each in found.waived:
        for name in each.conclusion.hosts:
            waived.setdefault(name, []).append(each.conclusion)
    if "" in entries:
        stream.write(_suite("fleet", [_fault("fleet", each, found, asked) for each in entries[""]]))
    for host in found.hosts.values():
        cases = [_examined(host), *(_fault(host.name, each, found, asked) for each in entries.get(host.name, ()))]
        cases += [
            _case(host.name, each, _told("skipped", each.state, f"{each.state}: {each.reason}", ""))
            for each in waived.get(host.name, ())
        ]
        stream.write(_suite(host.name, cases))
    stream.write("</testsuites>\n")


def _suite(name: str, cases: Sequence[str]) -> str:
    count = {kind: sum(f"<{kind} " in case for case in cases) for kind in ("failure", "error", "skipped")}
    told = f'failures="{count["failure"]}" errors="{count["error"]}" skipped="{count["skipped"]}" time="0.000"'
    shown = escape(name)
    return f'<testsuite name="{shown}" hostname="{shown}" tests="{len(cases)}" {told}>\n{"".join(cases)}</testsuite>\n'


def _examined(host: Host) -> str:
    start = f'<testcase classname="{escape(host.name)}" name="examined" time="0"'
    if host.state == FRESH:
        return f"{start}/>\n"
    why = f"last examined {text.day(host.last)}" if host.last else "nobody examined it"
    if host.state == UNKNOWN:
        why = f"{text.count(len(host.unjudged), 'fault')} could not be judged: {next(iter(host.unjudged.values()))}"
    return f"{start}>{_told('error', host.state if host.state != NEVER else 'never-examined', why, why)}</testcase>\n"


def _fault(host: str, entry: Entry, found: Standing, asked: Asked) -> str:
    details = "\n".join(_details(host, entry, asked))
    if entry.of.severity in at_least(found.limits.fail_on):
        return _case(host, entry.of, _told("failure", entry.of.severity, entry.of.statement or entry.of.fault, details))
    return _case(host, entry.of, f"<system-out>{escape(details)}</system-out>")


def _case(host: str, of: Conclusion, inside: str) -> str:
    name = f"{of.fault} {named(of)}".rstrip()
    return f'<testcase classname="{escape(f"{host}.{of.source}")}" name="{escape(name)}" time="0">{inside}</testcase>\n'


def _details(host: str, entry: Entry, asked: Asked) -> Iterator[str]:
    of = entry.of
    yield of.statement
    told = {
        "severity": of.severity,
        "since": text.day(entry.known.since),
        "hosts": " ".join(of.hosts),
        "observed": "" if of.observed is None else text.value(of.observed),
        "wanted": "" if of.wanted is None else text.value(of.wanted),
        "who": of.who,
        "manual": of.next.text,
        "next": asked.command(of.next, [host] if of.next.hosts else ()) if of.next.verb else "",
    }
    yield from (f"{name}: {said}" for name, said in told.items() if said)
    yield from of.evidence


def _told(kind: str, sort: str, message: str, details: str) -> str:
    return f'<{kind} type="{escape(sort)}" message="{escape(message)}">{escape(details)}</{kind}>'
