"""Which criteria of a scorecard hosts meet, from the findings of an audit. Pure.

A criterion passes only by facts that decide it: every fact of its checks was read, and each check that applies passed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nodetune.api.model import Finding, HostResult, Unread, Value
from nodetune.audit import scorecards
from nodetune.audit.scorecards import Criterion, Scorecard
from nodetune.checks import fleet_comparisons
from nodetune.config import profile
from nodetune.foundation import by_key

FAIL, NOT_JUDGED, PASS, SKIP = JUDGEABLE = ("fail", "not judged", "pass", "skip")
"""Of a criterion that checks judge, and of a check on a host. skip: it applies to no host."""

SHOWN, REFUSED, JOB, ORGANISATION = OTHERS = ("shown", "refused", "job", "organisation")
"""Of one without checks. shown: by a figure or a command; the others: why says why no check judges it."""

STATUSES = (*JUDGEABLE, *OTHERS)
JUDGED = (PASS, FAIL)
FAILING = ("fail", "waived")
"""A waiver is the site's own decision: the rating does not know it."""


class _Verdict(NamedTuple):
    """The status of a criterion, or of one of its checks, on a host, and the reason."""

    status: str
    why: str = ""
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """A criterion with its status and the reason; `hosts` has check → the hosts on which it fails or, if none fails, decides nothing."""

    criterion: Criterion
    status: str
    why: str = ""
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
        """Return the ids of the criteria that a check fails."""
        return ", ".join(each.criterion.name for each in self.rows if each.status == FAIL and check in each.hosts)

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
        "of": criterion.of,
        "status": row.status,
        "checks": list(criterion.checks),
        "shown": criterion.shown,
        "why": row.why,
        "differs": criterion.differs,
        "hosts": {check: list(hosts) for check, hosts in row.hosts.items()},
    }


def score(card: Scorecard, results: Sequence[HostResult]) -> Score:
    """Judge every criterion of a scorecard by what an audit found."""
    reached = [each for each in results if each.state == "ok"]
    found = [(host, {each.check: each for each in host.findings}) for host in reached]
    return Score(card, len(results), len(reached), tuple(_scored(card, each, found) for each in card.criteria))


def _scored(card: Scorecard, criterion: Criterion, found: Sequence[tuple[HostResult, dict[str, Finding]]]) -> Scored:
    """Return the row: one host that fails a check fails the criterion, and one where it is not judged leaves it so."""
    if not criterion.checks:
        status = criterion.of if criterion.of != "node" else SHOWN if criterion.shown else REFUSED
        return Scored(criterion, status, criterion.why)
    verdicts = [(host.host, _on_host(card, criterion, host, mine)) for host, mine in found]
    status = next((each for each in STATUSES if any(its.status == each for _, its in verdicts)), NOT_JUDGED)
    chosen = [(host, its) for host, its in verdicts if its.status == status]
    where = by_key((check, host) for host, its in chosen for check in its.checks)
    why = next((its.why for _, its in chosen), "no host was reached")
    return Scored(criterion, status, why, {check: tuple(hosts) for check, hosts in where.items()})


def _on_host(card: Scorecard, criterion: Criterion, host: HostResult, found: dict[str, Finding]) -> _Verdict:
    """Return what a host shows of a criterion: the first status that one of its checks has."""
    if criterion.machine and (other := _other_machine(criterion, host)):
        return other
    judged = [check for check in criterion.checks if check in found or check not in criterion.also]
    seen = {check: _of_check(check, host, found) for check in judged}
    passed = any(its.status == PASS for check, its in seen.items() if check not in criterion.also)
    if passed:  # what does not apply as far as was read may apply
        seen |= {check: each for check in judged if seen[check].status != FAIL and (each := _unread(card, check, host))}
    for status in (FAIL, NOT_JUDGED):
        if chosen := {check: its.why for check, its in seen.items() if its.status == status}:
            why = "" if status == FAIL else "; ".join(dict.fromkeys(chosen.values()))
            return _Verdict(status, why, tuple(chosen))
    if criterion.checks == criterion.also and criterion.shown:
        return _Verdict(SHOWN)
    if criterion.why and any(its.status == PASS for its in seen.values()):
        return _Verdict(NOT_JUDGED, criterion.why)
    if not passed:
        return _Verdict(SKIP, "; ".join(dict.fromkeys(its.why for its in seen.values() if its.why)))
    lacks = [words for by, words in criterion.by.items() if not scorecards.has(host.rests_on, by)]
    return _Verdict(NOT_JUDGED, "; ".join(lacks)) if lacks else _Verdict(PASS)


def _other_machine(criterion: Criterion, host: HostResult) -> _Verdict | None:
    fact = host.rests_on.get(scorecards.VIRTUAL, Unread("not read"))
    if not isinstance(fact, Value):
        return _Verdict(NOT_JUDGED, f"{scorecards.VIRTUAL}: {fact.reason}" if isinstance(fact, Unread) else "")
    mine = fact.value == scorecards.MACHINES[criterion.machine]
    return None if mine else _Verdict(SKIP, f"not {'a ' if fact.value is False else ''}{criterion.machine}")


def _of_check(check: str, host: HostResult, found: dict[str, Finding]) -> _Verdict:
    each = found.get(check)
    if each is None:
        return _without(check, host)
    if each.status in FAILING:
        return _Verdict(FAIL)
    return _Verdict(each.status if each.status in (PASS, SKIP) else NOT_JUDGED, each.reason)


def _unread(card: Scorecard, check: str, host: HostResult) -> _Verdict | None:
    """Return why a check decides nothing on a host: one of its facts was not read."""
    names = sorted(card.facts_of.get(check, frozenset()) & host.rests_on.keys())
    unread = [f"{name}: {why}" for name in names if (why := scorecards.lacking(host.rests_on[name]))]
    return _Verdict(NOT_JUDGED, "; ".join(unread)) if unread else None


def _without(check: str, host: HostResult) -> _Verdict:
    """Say why a check has no finding on a host."""
    if check in fleet_comparisons.every():
        return _Verdict(SKIP, "compares hosts")
    shipped = profile.shipped()
    switched_off = [
        name
        for name in ("base", *host.profile.split("+"))
        if name in shipped and shipped[name].checks.get(check) is False
    ]
    if check in host.off or not switched_off:
        return _Verdict(NOT_JUDGED, f"{check} is left out")
    if switched_off[0] == "base":
        return _Verdict(NOT_JUDGED, f"{check} is off: switch it on in your site file")
    return _Verdict(SKIP, f"the profile {switched_off[0]} leaves {check} out")


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
        status = FAIL if found.status in FAILING else NOT_JUDGED if found.status == "unknown" else ""
        if (found.check, status) in wanted:
            if id(found) not in alone:
                shown = FAIL if status == FAIL else found.status
                alone[id(found)] = found, replace(found, status=shown, part_of="", reported_by={})
            yield alone[id(found)][1]
