"""Findings that a site has accepted: shown as waived until the waiver's last day, never hidden. Pure."""

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
        ended = f"the waiver of {waiver.owner} ended on {waiver.until}"
        return replace(finding, reason=f"{finding.reason}; {ended}" if finding.reason else ended)
    reason = f"{waiver.reason} ({waiver.owner}, until {waiver.until})"
    return replace(finding, status="waived", reason=reason)


def covers(pattern: str, host: str) -> bool:
    """Return whether a waiver's `hosts` names the host. Raise ValueError as `read` does."""
    names, shell = read(pattern)
    return host in names or any(fnmatchcase(host, part) for part in shell)


@cache
def read(pattern: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Split the `hosts` of a waiver into host names (from node sets) and shell patterns.

    Raise ValueError for anything else: it would silently waive nothing.
    """
    from nodetune.foundation import nodeset  # here: ClusterShell takes 10 ms, and few runs have waivers

    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", pattern) if part.strip()]
    for part in parts:
        if part.startswith("@"):
            raise ValueError(f"{part!r} is not a host: write an inventory group under groups, without @")
    shell = tuple(part for part in parts if "*" in part or "?" in part)  # [01-16] is a node set's
    for part in shell:
        if re.search(r"[]\[~!&^\s]", re.sub(r"\[[^]\[]+\]", "", part)):
            raise ValueError(f"{part!r} is not a valid shell pattern: write it like login* or gpu[0-3]?")
    names = frozenset(nodeset.unfold(",".join(part for part in parts if part not in shell)))
    if not names and not shell:
        raise ValueError(f"{pattern!r} is not a valid host: write it like gpu[001-128,200] or login*")
    return names, shell


def parse(file: LocatedYaml, known: Iterable[str]) -> tuple[Waiver, ...]:
    """Read the waivers of a site file. Errors are collected."""
    given = (file.data or {}).get("waivers") or []
    found = []
    for number, each in enumerate(given):
        with file.collecting():
            if each:
                found.append(_waiver(file, number, each, known))
    return tuple(found)


def _waiver(file: LocatedYaml, number: int, given: Any, known: Iterable[str]) -> Waiver:
    at = ("waivers", number)
    if given["id"] not in known:
        file.fail(yaml_lines.unknown(given["id"], known, "check"), *at, "id")
    hosts, groups, until = str(given.get("hosts", "")), given.get("groups", []), given["until"]
    if "hosts" in given:
        read_hosts(file, hosts, *at, "hosts")
    if not isinstance(until, datetime.date):
        file.fail("until must be a date such as 2027-01-31", *at, "until")
    names = (groups,) if isinstance(groups, str) else tuple(groups)
    reason, owner = str(given["reason"]), str(given["owner"])
    return Waiver(given["id"], hosts, reason, owner, until.isoformat(), names)


def read_hosts(file: LocatedYaml, given: Any, *path: Any) -> None:
    """Check the host names in a site file. Raise FileError."""
    try:
        read(str(given))
    except ValueError as problem:
        file.fail(f"hosts: {problem}", *path)
