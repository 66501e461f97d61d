"""Which criteria of a scorecard hosts meet, from the findings of an audit. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.api.model import Finding, HostResult
from nodetune.audit.scorecards import Criterion, Scorecard

PASS, FAIL, UNKNOWN, SKIP, OFF, NOT_JUDGED = STATUSES = ("pass", "fail", "unknown", "skip", "off", "not judged")
"""Of a criterion. skip: it applies to no host; off: no profile or site file switches its checks on."""

JUDGED = (PASS, FAIL, UNKNOWN)
FAILING = ("fail", "waived")
"""A waiver is the site's own decision: the rating does not know it."""


@dataclass(frozen=True)
class Scored:
    """A criterion with its status; `hosts` has check → the hosts on which it fails, or is unknown if none fails."""

    criterion: Criterion
    status: str
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """All criteria of a scorecard on the hosts of an audit."""

    card: Scorecard
    hosts: int
    reached: int
    rows: tuple[Scored, ...]

    def count(self, *statuses: str) -> int:
        """Return the number of criteria with one of these statuses."""
        return sum(each.criterion.count for each in self.rows if each.status in statuses)

    def criteria_of(self, check: str) -> str:
        """Return the ids of the criteria that a check judges."""
        return ", ".join(each.name for each in self.card.criteria if check in each.checks)

    def document(self) -> dict[str, Any]:
        """Return the member `against` of an audit document."""
        about = {name: getattr(self.card, name) for name in ("name", "title", "version", "as_of", "source")}
        counts = {"criteria": self.count(*STATUSES), "judged": self.count(*JUDGED)}
        counts |= {status.replace(" ", "_"): self.count(status) for status in STATUSES}
        return {**about, "hosts": self.reached, "counts": counts, "criteria": [_told(each) for each in self.rows]}


def _told(row: Scored) -> dict[str, Any]:
    criterion = row.criterion
    return {
        "ids": list(criterion.ids),
        "text": criterion.text,
        "status": row.status,
        "checks": list(criterion.checks),
        "why": criterion.why,
        "differs": criterion.differs,
        "hosts": {check: list(hosts) for check, hosts in row.hosts.items()},
    }


def score(card: Scorecard, results: Sequence[HostResult]) -> Score:
    """Judge every criterion of a scorecard by what an audit found."""
    found: dict[str, dict[str, list[str]]] = {check: {} for check in card.checks}
    for result in results:
        for each in result.findings:
            if each.check in found:
                status = FAIL if each.status in FAILING else each.status
                found[each.check].setdefault(status, []).append(result.host)
    rows = tuple(_scored(each, found) for each in card.criteria)
    return Score(card, len(results), sum(each.state == "ok" for each in results), rows)


def _scored(criterion: Criterion, found: dict[str, dict[str, list[str]]]) -> Scored:
    """Return the row: one host that fails a check fails the criterion."""
    if not criterion.checks:
        return Scored(criterion, NOT_JUDGED)
    seen = {status for check in criterion.checks for status in found[check]}
    passed = any(PASS in found[check] for check in criterion.checks if check not in criterion.also)
    status = next((each for each in (FAIL, UNKNOWN) if each in seen), PASS if passed else SKIP if seen else OFF)
    where = {check: tuple(found[check].get(status, ())) for check in criterion.checks if status in (FAIL, UNKNOWN)}
    return Scored(criterion, status, {check: hosts for check, hosts in where.items() if hosts})


def only(score: Score, results: Iterable[HostResult]) -> list[HostResult]:
    """Return the results with nothing but the findings behind criteria that fail or are unknown, each for itself."""
    wanted = {(check, row.status) for row in score.rows for check in row.hosts}
    alone: dict[int, tuple[Finding, Finding]] = {}
    return [replace(result, findings=tuple(_alone(result, wanted, alone))) for result in results]


def _alone(
    result: HostResult, wanted: set[tuple[str, str]], alone: dict[int, tuple[Finding, Finding]]
) -> Iterator[Finding]:
    """Yield findings that no other one reports, the same object for the same finding of many hosts."""
    for found in result.findings:
        status = FAIL if found.status in FAILING else found.status
        if (found.check, status) in wanted:
            if id(found) not in alone:
                alone[id(found)] = found, replace(found, status=status, part_of="", reported_by={})
            yield alone[id(found)][1]
