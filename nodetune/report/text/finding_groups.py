"""Group the findings of many hosts by check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nodetune.api.model import Finding, FleetFinding, HostResult
from nodetune.foundation import by_key, text


@dataclass(frozen=True)
class FindingGroup:
    """One failing check over the hosts that fail it."""

    check: str
    severity: str
    title: str
    members: tuple[tuple[HostResult, Finding], ...]

    @property
    def hosts(self) -> list[str]:
        return [result.host for result, _ in self.members]

    @property
    def of_fleet(self) -> bool:
        """Whether it comes from comparing hosts."""
        return isinstance(self.members[0][1], FleetFinding)

    @property
    def since(self) -> str:
        """The day from which the history knows it on one of the hosts, such as `since 2026-11-03`; empty: unknown."""
        known = [result.since[self.check] for result, _ in self.members if self.check in result.since]
        return f"since {text.day(min(known))}" if known else ""

    @property
    def rank(self) -> tuple[Any, ...]:
        """The place in a report: the most severe first, of these the dearest, then what most hosts have."""
        return *self.members[0][1].rank, -len(self.members), self.check


def grouped(results: Iterable[HostResult], status: str = "fail") -> list[FindingGroup]:
    """Group findings of one status by check and cause, in the order of `rank`."""
    by_check = by_key(
        ((found.check, found.severity), (result, found))
        for result in results
        for found in result.findings
        if found.status == status and not found.part_of
    )
    groups = (FindingGroup(*named, members[0][1].title, tuple(members)) for named, members in by_check.items())
    return sorted(groups, key=lambda group: group.rank)
