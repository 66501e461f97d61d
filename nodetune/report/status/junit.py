"""The status of hosts as JUnit XML: a suite for each host, a case for each fault, and one for its examination."""

from collections.abc import Iterator
from typing import TextIO

from nodetune.api.conclusion import Conclusion
from nodetune.api.model import at_least
from nodetune.foundation import by_key, text
from nodetune.report import junit
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import FRESH, NEVER, UNKNOWN, Entry, Host, Standing, named


def write(found: Standing, asked: Asked, stream: TextIO) -> None:
    """Write a host at a time. Faults below --fail-on fail no case but are in its output."""
    junit.write_suites(stream, "status", _suites(found, asked))


def _suites(found: Standing, asked: Asked) -> Iterator[str]:
    entries = found.entries_of()
    waived = by_key((name, each.conclusion) for each in found.waived for name in each.conclusion.hosts)
    if "" in entries:
        yield junit.suite("fleet", [_fault("fleet", each, found, asked) for each in entries[""]])
    for host in found.hosts.values():
        cases = [_examined(host), *(_fault(host.name, each, found, asked) for each in entries.get(host.name, ()))]
        cases += [
            _case(host.name, each, junit.told("skipped", each.state, f"{each.state}: {each.reason}", ""))
            for each in waived.get(host.name, ())
        ]
        yield junit.suite(host.name, cases)


def _examined(host: Host) -> str:
    if host.state == FRESH:
        return junit.case(host.name, "examined", "")
    why = f"last examined {text.day(host.last)}" if host.last else "nobody examined it"
    if host.state == UNKNOWN:
        why = f"{text.count(len(host.unjudged), 'fault')} could not be judged: {next(iter(host.unjudged.values()))}"
    state = host.state if host.state != NEVER else "never-examined"
    return junit.case(host.name, "examined", junit.told("error", state, why, why))


def _fault(host: str, entry: Entry, found: Standing, asked: Asked) -> str:
    details = "\n".join(_details(host, entry, asked))
    if entry.of.severity in at_least(found.limits.fail_on):
        return _case(
            host, entry.of, junit.told("failure", entry.of.severity, entry.of.statement or entry.of.fault, details)
        )
    return _case(host, entry.of, f"<system-out>{junit.escape(details)}</system-out>")


def _case(host: str, of: Conclusion, inside: str) -> str:
    return junit.case(f"{host}.{of.source}", f"{of.fault} {named(of)}".rstrip(), inside)


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
