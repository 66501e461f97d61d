"""The summary of a run: counts and the exit code. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from nodetune.api.model import SEVERITIES, Finding, HostResult
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK


@dataclass(frozen=True)
class Summary:
    """Counts over all hosts. `failing` and `unknown` are by severity; `failing` counts findings of one cause once."""

    hosts: int = 0
    reached: int = 0
    failing: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)


def summarise(results: Iterable[HostResult]) -> Summary:
    """Count hosts and findings."""
    hosts = reached = 0
    failing: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for result in results:
        hosts += 1
        reached += result.state == "ok"
        for found in result.findings:
            statuses[found.status] += 1
            if found.status == "fail" and not found.part_of:
                failing[found.severity] += 1
            elif found.status == "unknown":
                unknown[found.severity] += 1
    return Summary(hosts, reached, dict(failing), dict(unknown), dict(statuses))


def parts_of(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Return leading check → the checks that its finding also reports."""
    found: dict[str, list[str]] = {}
    for each in findings:
        if each.part_of and each.check not in found.setdefault(each.part_of, []):
            found[each.part_of].append(each.check)
    return found


def at_least(severity: str) -> tuple[str, ...]:
    """Return the severities from `severity` up."""
    return SEVERITIES[SEVERITIES.index(severity) :]


def exit_code(summary: Summary, fail_on: str) -> int:
    """Return the exit code of an audit. `fail_on` is a severity, or "never" to ignore findings."""
    counted = () if fail_on == "never" else at_least(fail_on)
    if summary.reached < summary.hosts or any(summary.unknown.get(each) for each in counted):
        return INCOMPLETE
    return FINDINGS if any(summary.failing.get(each) for each in counted) else OK
