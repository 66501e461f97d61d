"""Findings that somebody decided to live with: shown as waived until the waiver's last day, never hidden. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from nodetune.api.model import Finding, Waiver
from nodetune.foundation import yaml_lines
from nodetune.foundation.yaml_lines import LocatedYaml
from nodetune.hosts import nodeset


def waive(findings: Iterable[Finding], waivers: Iterable[Waiver], host: str, today: str) -> tuple[Finding, ...]:
    """Mark failing findings of a host as waived if a waiver covers them. `today` is an ISO date."""
    lasting = sorted(waivers, key=lambda waiver: waiver.until)  # of several for one check the longest counts
    mine = {waiver.id: waiver for waiver in lasting if covers(waiver.hosts, host)}
    if not mine:
        return tuple(findings)
    return tuple(_one(finding, mine.get(finding.check), today) for finding in findings)


def _one(finding: Finding, waiver: Waiver | None, today: str) -> Finding:
    if waiver is None or finding.status != "fail":
        return finding
    if today > waiver.until:
        return replace(finding, reason=_joined(finding.reason, f"the waiver of {waiver.owner} ended on {waiver.until}"))
    reason = f"{waiver.reason} ({waiver.owner}, until {waiver.until})"
    return replace(finding, status="waived", reason=reason)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def covers(pattern: str, host: str) -> bool:
    """Return whether a waiver's `hosts` names the host. Raise ValueError as `read` does."""
    names, shell = read(pattern)
    return host in names or any(fnmatchcase(host, part) for part in shell)


@cache
def read(pattern: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Split the `hosts` of a waiver into host names (from node sets) and shell patterns.

    Raise ValueError for anything else: it would silently waive nothing.
    """
    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", pattern) if part.strip()]
    shell = tuple(part for part in parts if "*" in part or "?" in part)  # [01-16] is a node set's
    for part in shell:
        if re.search(r"[]\[~!&^\s]", re.sub(r"\[[^]\[]+\]", "", part)):
            raise ValueError(f"{part!r} is no shell pattern: write it as in login* or gpu[0-3]?")
    names = frozenset(nodeset.unfold(",".join(part for part in parts if part not in shell)))
    if not names and not shell:
        raise ValueError(f"{pattern!r} names no host: write it as in gpu[001-128,200] or login*")
    return names, shell


def parse(file: LocatedYaml, known: Iterable[str]) -> tuple[Waiver, ...]:
    """Read the waivers of a site file. Raises FileError."""
    given = (file.data or {}).get("waivers") or []
    return tuple(_waiver(file, number, each, known) for number, each in enumerate(given))


def _waiver(file: LocatedYaml, number: int, given: Any, known: Iterable[str]) -> Waiver:
    if given["id"] not in known:
        file.fail(yaml_lines.unknown(given["id"], known, "check"), "waivers", number, "id")
    hosts, until = given["hosts"], given["until"]
    try:
        read(hosts)
    except ValueError as problem:
        file.fail(f"hosts: {problem}", "waivers", number, "hosts")
    if not isinstance(until, datetime.date):
        file.fail("until wants a date such as 2027-01-31", "waivers", number, "until")
    return Waiver(given["id"], hosts, str(given["reason"]), str(given["owner"]), until.isoformat())
