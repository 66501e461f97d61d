"""The results of checks on this host or saved ones, for `nodetune explain`."""

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import click

from nodetune.api.model import Check, Finding, HostResult
from nodetune.audit import run
from nodetune.audit.manual_steps import filled
from nodetune.audit.request import AuditRequest
from nodetune.audit.selection import Selection
from nodetune.cli import proposed_options, settings
from nodetune.cli.terminal import Terminal
from nodetune.foundation import UserError, by_key
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.report.text import host_names

SECONDS = 10.0
"""An explanation waits no longer for this host."""

MAX_LINES = 8
WORDS = {
    "pass": "as wanted",
    "fail": "not as wanted",
    "waived": "waived",
    "unknown": "unknown",
    "skip": "not applicable",
}


def section(request: AuditRequest, name: str, meant: Sequence[Check], known: Mapping[str, Check]) -> int:
    """Print a section of the audit of the hosts (of these checks only, if any are meant), and return the exit code."""
    from nodetune.report import sections
    from nodetune.report.text import explained

    if meant:
        request = replace(request, selection=replace(request.selection, select=tuple(check.id for check in meant)))
    selection = run.compared(request)
    results = run.run(request, selection, Terminal())
    asked = proposed_options.text(request.connection, request.facts_path, selection)
    selected, compared = proposed_options.selected(selection), shlex.join(request.compared)
    commands = sections.CommandOptions(asked, selected, saved=request.facts_path is not None, compared=compared)
    explained.write(sections.build(results, commands), name, sys.stdout, known)
    lost = [result for result in results if result.state != "ok"]
    if lost:
        click.echo(
            f"{host_names.named([each.host for each in lost])}: not reached ({commands.audit()} says why)", err=True
        )
    return INCOMPLETE if lost else OK


Seen = list[tuple[HostResult, Finding]]


def observed(checks: Iterable[Check], request: AuditRequest) -> tuple[dict[str, Seen], bool]:
    """Return check → hosts with what was found there, and whether these are hosts that were named.

    Without named hosts, this host is judged; if it cannot be read, it has nothing. Saved facts raise FileError.
    """
    wanted = replace(request.selection, select=tuple(check.id for check in checks))
    named = request.facts_path is not None or (bool(request.connection.inventory) and _typed())
    if not wanted.select:
        return {}, named
    asked = replace(request, selection=wanted, no_compare=True, reference=None)
    read = [each for each in (run.run(asked, wanted, Terminal()) if named else _here(wanted)) if each.state == "ok"]
    return by_key((finding.check, (each, finding)) for each in read for finding in each.findings), named


def _typed() -> bool:
    """Return whether -i is on the command line: what a check means is asked more often than what a whole fleet has."""
    return not settings.is_implicit(click.get_current_context(), "inventory")


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


def rows(found: Seen, saved: bool) -> Iterator[tuple[str, str]]:
    """Yield a head and a text for each answer: what was seen on which hosts, whether that is as wanted, and what to do."""
    alike: dict[str, list[str]] = {}
    steps: dict[str, list[str]] = {}
    for result, finding in found:
        told = ", ".join(part for part in (finding.observed, WORDS.get(finding.status, finding.status)) if part)
        alike.setdefault(f"{told}: {finding.reason}" if finding.reason else told, []).append(result.host)
        if finding.status == "fail" and (own := filled(finding.manual, result, finding)) != finding.manual:
            steps.setdefault(own, []).append(result.host)
    for head, texts in (("On", alike), ("To do on", steps)):
        ordered = sorted(texts.items(), key=lambda each: -len(each[1]))
        for told, hosts in ordered[:MAX_LINES]:
            yield f"{head} {host_names.named(hosts) if saved else 'this host'}", told
        if left := sum(len(hosts) for _, hosts in ordered[MAX_LINES:]):
            yield f"{head} {left} more", "nodetune audit -s ID lists all"
