"""The results of checks on this host or saved ones, for `nodetune explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from nodetune.api.model import Check, Finding, HostResult
from nodetune.audit.selection import Selection
from nodetune.foundation import UserError
from nodetune.report.text import host_names

SECONDS = 10.0
"""An explanation waits no longer for this host."""

MOST = 8
WORDS = {
    "pass": "as wanted",
    "fail": "not as wanted",
    "waived": "waived",
    "unknown": "unknown",
    "skip": "not applicable",
}


def observed(
    checks: Iterable[Check], selection: Selection, facts_path: Path | None
) -> dict[str, list[tuple[str, Finding]]]:
    """Return check → hosts with what was found there. An unreadable host has nothing; saved facts raise FileError."""
    wanted = replace(selection, select=tuple(check.id for check in checks))
    if not wanted.select:
        return {}
    found: dict[str, list[tuple[str, Finding]]] = {}
    for result in _saved(facts_path, wanted) if facts_path else _here(wanted):
        for finding in result.findings if result.state == "ok" else ():
            found.setdefault(finding.check, []).append((result.host, finding))
    return found


def _saved(path: Path, selection: Selection) -> list[HostResult]:
    from nodetune.audit import auditor
    from nodetune.facts.saved import Saved

    return auditor.by_name(auditor.audit_files(Saved(path), selection))


def _here(selection: Selection) -> list[HostResult]:
    """Return this host's result; none if it cannot be read, such as on a laptop without Linux."""
    from nodetune.audit import hosts as audit_hosts
    from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
    from nodetune.hosts.inventory.selection import this_host

    reach = ConnectionOptions(transport="local", options=SessionOptions(seconds=SECONDS))
    try:
        return list(audit_hosts.audit_keeping_facts([this_host()], selection, reach))
    except (UserError, OSError):
        return []


def rows(found: list[tuple[str, Finding]], saved: bool) -> Iterator[tuple[str, str]]:
    """Yield a head and a text for each answer: what was seen on which hosts, and whether that is as wanted."""
    alike: dict[str, list[str]] = {}
    for host, finding in found:
        told = ", ".join(part for part in (finding.observed, WORDS.get(finding.status, finding.status)) if part)
        alike.setdefault(f"{told}: {finding.reason}" if finding.reason else told, []).append(host)
    ordered = sorted(alike.items(), key=lambda each: -len(each[1]))
    for told, hosts in ordered[:MOST]:
        yield f"On {host_names.named(hosts)}" if saved else "On this host", told
    if left := sum(len(hosts) for _, hosts in ordered[MOST:]):
        yield f"On {left} more", "nodetune audit -s ID lists all"
