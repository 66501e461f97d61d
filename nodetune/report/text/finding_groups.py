"""Group the findings of many hosts by check, and count them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nodetune import data
from nodetune.api.model import SEVERITIES, Finding, FleetFinding, HostResult
from nodetune.audit.summary import Summary
from nodetune.foundation import by_key, text
from nodetune.report.text.lines import STYLE

BY_TABLE = "gpu-driver-vulnerable"


@dataclass(frozen=True)
class Group:
    """One failing check over the hosts that fail it."""

    check: str
    severity: str
    title: str
    members: tuple[tuple[HostResult, Finding], ...]

    @property
    def hosts(self) -> list[str]:
        return [result.host for result, _ in self.members]

    @property
    def rank(self) -> tuple[Any, ...]:
        """The place in a report: the most severe first, of these the dearest, then what most hosts have."""
        return *self.members[0][1].rank, -len(self.members), self.check


def grouped(results: Iterable[HostResult], status: str = "fail") -> list[Group]:
    """Group findings of one status by check and cause, in the order of `rank`."""
    by_check: dict[tuple[str, str], list[tuple[HostResult, Finding]]] = {}
    for result in results:
        for found in result.findings:
            if found.status == status and not found.part_of:
                by_check.setdefault((found.check, found.severity), []).append((result, found))
    groups = [
        Group(check, severity, members[0][1].title, tuple(members)) for (check, severity), members in by_check.items()
    ]
    return sorted(groups, key=lambda group: group.rank)


def fleet_groups(results: Iterable[HostResult]) -> dict[str, tuple[list[str], int, int]]:
    """Return group → its hosts, the number of comparisons, and the number of comparisons in which all hosts agree."""
    hosts: dict[str, list[str]] = {}
    judged: dict[str, set[str]] = {}
    differing: dict[str, set[str]] = {}
    for result in results:
        mine = [found for found in result.findings if isinstance(found, FleetFinding)]
        if mine:
            hosts.setdefault(mine[0].group, []).append(result.host)
        for found in mine:
            if found.compared:
                judged.setdefault(found.group, set()).add(found.check)
            if found.status in ("fail", "waived"):
                differing.setdefault(found.group, set()).add(found.check)
    return {
        name: (hosts[name], len(judged.get(name, ())), len(judged.get(name, set()) - differing.get(name, set())))
        for name in sorted(hosts, key=lambda each: (-len(hosts[each]), each))
    }


def table_age(results: Iterable[HostResult], today: datetime.date) -> str:
    """Return a warning if a driver passed according to a table that is too old to contain the newest faults."""
    passed = any(each.check == BY_TABLE and each.status == "pass" for result in results for each in result.findings)
    return data.aged(today) if passed else ""


def compliant(result: HostResult) -> bool:
    """Return whether every check that applies to a host was judged and none failed."""
    return result.state == "ok" and not any(found.status in ("fail", "unknown") for found in result.findings)


def skipped(results: Iterable[HostResult]) -> dict[tuple[str, str], list[str]]:
    """Return (check, the reason why it does not apply) → hosts."""
    return by_key(
        ((each.check, each.reason), result.host)
        for result in results
        for each in result.findings
        if each.status == "skip"
    )


def totals(summary: Summary, compliant: int) -> list[tuple[str, str] | str]:
    parts: list[tuple[str, str] | str] = [(f"{text.count(summary.reached, 'host')} audited", "bold")]
    if summary.reached < summary.hosts:
        parts.append((f", {summary.hosts - summary.reached} not reached", "bold magenta"))
    if not summary.reached:
        return parts
    if summary.hosts > 1:
        parts.append(f", {compliant} compliant")
    parts.append(": ")
    failing = [
        (f"{summary.failing[each]} {each}", STYLE[each]) for each in reversed(SEVERITIES) if summary.failing.get(each)
    ]
    for number, part in enumerate(failing):
        parts += [", ", part] if number else [part]
    found = sum(summary.failing.values())
    parts.append(f" finding{'s' * (found != 1)}" if found else "no findings")
    rest = [
        f"{summary.statuses[each]} {word}"
        for each, word in (("pass", "passed"), ("skip", "not applicable"), ("unknown", "unknown"), ("waived", "waived"))
        if summary.statuses.get(each)
    ]
    return [*parts, f" · {' · '.join(rest)}"] if rest else parts
