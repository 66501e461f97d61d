"""Findings that somebody decided to live with: shown as waived until the waiver's last day, never hidden. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from nodetune import nodeset
from nodetune.model import Finding, Waiver


def waive(findings: Iterable[Finding], waivers: Iterable[Waiver], host: str, today: str) -> tuple[Finding, ...]:
    """The findings of a host, with failing ones that a waiver covers marked as waived. `today` is an ISO date."""
    lasting = sorted(waivers, key=lambda waiver: waiver.until)  # of several for one check the longest counts
    mine = {waiver.id: waiver for waiver in lasting if covers(waiver.hosts, host)}
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
    """Whether a waiver's `hosts` (a node set, or shell patterns, comma-separated) names the host."""
    shell = (part.strip() for part in pattern.split(",") if "*" in part or "?" in part)  # [01-16] is a node set's
    return host in nodeset.expand(pattern) or any(fnmatchcase(host, part) for part in shell)
