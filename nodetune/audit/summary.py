"""Findings of one cause joined, counts of findings, and the exit code. Pure."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nodetune import data
from nodetune.api.model import NOT_COLLECTED, SEVERITIES, Check, Finding, FleetFinding, HostResult, at_least
from nodetune.audit import log_gap
from nodetune.foundation import by_key, text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK

if TYPE_CHECKING:
    from nodetune.api.device import Device

MAX_LENGTH = 4000
"""Longest text about one finding, as in evaluate.py."""

MAX_KNOWN = 4096
"""Number of groups of findings with one cause that the memo keeps."""

UNREAD = {
    "too long": ("time was over", "did not return within", "did not answer", "timed out"),
    "permission": ("needs root", "ermission denied", "not permitted"),
    "not collected": (NOT_COLLECTED,),
    "not there": ("o such file",),
}
"""Why a fact could not be read → parts of the reasons that say so."""

BY_TABLE = "gpu-driver-vulnerable"
WITH_IT = "with it: "
"""In the reason of a leader, before its parts."""

HOST = ""
"""The place of a finding that names no device."""


@dataclass(frozen=True)
class Summary:
    """Counts over all hosts. `failing` and `unknown` are by severity; `failing` counts findings of one cause once."""

    hosts: int = 0
    reached: int = 0
    failing: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    """By severity; without those of a log that was cut: another look reads no more of it."""
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
            elif found.status == "unknown" and not log_gap.is_lost(found.reason):
                unknown[found.severity] += 1
    return Summary(hosts, reached, dict(failing), dict(unknown), dict(statuses))


def parts_of(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Return leading check → the checks that its finding also reports."""
    found: dict[str, list[str]] = {}
    for each in findings:
        if each.part_of and each.check not in found.setdefault(each.part_of, []):
            found[each.part_of].append(each.check)
    return found


def exit_code(summary: Summary, fail_on: str) -> int:
    """Return the exit code of an audit. `fail_on` is a severity, or "never" to ignore findings."""
    counted = at_least(fail_on)
    if summary.reached < summary.hosts or any(summary.unknown.get(each) for each in counted):
        return INCOMPLETE
    return FINDINGS if any(summary.failing.get(each) for each in counted) else OK


class OneCause:
    """Joins findings of one cause: on each device, the leading check also reports the others.

    Hosts with the same findings get the same objects.
    """

    def __init__(self, checks: Iterable[Check]) -> None:
        self._leaders = {check.id: check.leaders for check in checks if check.part_of}
        self._known: dict[tuple[Any, ...], tuple[list[Finding], dict[str, Finding]]] = {}

    def joined(self, findings: tuple[Finding, ...], devices: tuple[Device, ...] = ()) -> tuple[Finding, ...]:
        """Return the findings. Parts that a failing leader reports are marked."""
        failing = {found.check: found for found in findings if found.status == "fail"}
        pairs = {
            check: [each for each in _tops(leaders, failing) if _may_join(failing[check], failing[each])]
            for check, leaders in self._leaders.items()
            if check in failing
        }
        given = [failing[each] for check, leaders in pairs.items() if leaders for each in (check, *leaders)]
        if not given:
            return findings
        key = *map(id, given), devices if any(found.subjects for found in given) else ()
        if key not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            # holding what is given keeps its id from being used again
            self._known[key] = given, _Causes(failing, pairs, devices).changed()
        changed = self._known[key][1]
        return tuple(changed.get(found.check, found) for found in findings)


def _tops(leaders: Iterable[str], failing: Mapping[str, Finding]) -> Iterable[str]:
    """Return the failing ones of the leaders, each replaced by the one that already reports it, if any."""
    return dict.fromkeys(failing[each].part_of or each for each in leaders if each in failing)


def _may_join(part: Finding, leader: Finding) -> bool:
    """Return whether the leader may report the part: one that is more severe, or that alone gates, stays separate."""
    severer = SEVERITIES.index(part.severity) > SEVERITIES.index(leader.severity)
    return not severer and (leader.gates or not part.gates)


class _Causes:
    """The causes of the failing findings of one host. `pairs`: check → the leaders that may report it."""

    def __init__(
        self, failing: Mapping[str, Finding], pairs: Mapping[str, Sequence[str]], devices: tuple[Device, ...]
    ) -> None:
        self._failing, place_of = failing, _place_of(devices)
        self._places = {
            check: {subject: place_of(subject) for subject in found.subjects} or {HOST: HOST}
            for check, found in failing.items()
        }
        self._above: dict[tuple[str, str], str] = {}
        for check, leaders in pairs.items():
            for place in self._places[check].values():
                covering = [each for each in leaders if self._covers(each, place)]
                if covering:
                    self._above[check, place] = covering[0]

    def _covers(self, leader: str, place: str) -> bool:
        its = self._places[leader].values()
        return HOST in (place, *its) or place in its

    def _top(self, check: str, place: str) -> str:
        """Return the leader of a finding at a place, and of that leader, to the last."""
        its = self._places[check].values()
        at = place if place in its else next(iter(its))
        return self._top(self._above[check, at], at) if (check, at) in self._above else check

    def changed(self) -> dict[str, Finding]:
        """Return the changed findings by check: parts, and leaders whose reason names their parts."""
        found: dict[str, Finding] = {}
        parts: dict[str, list[str]] = {}
        for check in dict.fromkeys(check for check, _ in self._above):
            places = self._places[check]
            by = {each: self._top(check, at) for each, at in places.items() if (check, at) in self._above}
            for leader in dict.fromkeys(by.values()):
                parts.setdefault(leader, []).append(
                    self._told(check, leader, [each for each in by if by[each] == leader])
                )
            whole = next(iter(by.values())) if len(by) == len(places) else ""
            found[check] = replace(self._failing[check], part_of=whole, reported_by={} if HOST in by else by)
        for leader, told in parts.items():
            mine = found.get(leader, self._failing[leader])
            joint = ", " if WITH_IT in mine.reason else "; " * bool(mine.reason) + WITH_IT
            found[leader] = replace(mine, reason=mine.reason + joint + ", ".join(told))
        return found

    def _told(self, check: str, leader: str, subjects: Sequence[str]) -> str:
        """Return a part with what was observed, without the device if the leader has only that one."""
        part = self._failing[check]
        if HOST in subjects:
            return f"{check} ({part.observed})"
        known = any(subject != place for its in (check, leader) for subject, place in self._places[its].items())
        alone = known and len(subjects) == len(self._failing[leader].subjects) == 1
        seen = part.subjects[subjects[0]] if alone else text.folded({each: part.subjects[each] for each in subjects})
        return f"{check} ({seen})"


def _place_of(devices: tuple[Device, ...]) -> Callable[[str], str]:
    """Return the function from a subject to a text that is the same for all names of its device."""
    if not devices:
        return str
    from nodetune.audit.devices import Names  # most hosts have no finding about a device

    return Names(devices).key


def observed(result: HostResult, found: Finding, subjects: Mapping[str, str] | None = None) -> str:
    """Return what was observed on a host (at these subjects only), each device by all its names."""
    if not result.devices:
        return found.observed if subjects is None else text.folded(subjects)
    from nodetune.audit import devices  # most hosts have no finding about a device

    seen = found.subjects if subjects is None else subjects
    return text.plain(devices.folded(seen, result.devices, found.repair), MAX_LENGTH) if seen else found.observed


def unread(reason: str) -> str:
    """Return which kind of UNREAD the reason of an unknown finding is, or `other`."""
    kinds = (kind for kind, parts in UNREAD.items() if any(part in reason for part in parts))
    return next(kinds, "other")


def worded(result: HostResult) -> Iterator[Finding]:
    """Yield the findings of a host as `observed` words them."""
    return (replace(found, observed=observed(result, found)) if found.subjects else found for found in result.findings)


def seen(result: HostResult, found: Finding) -> str:
    """Return what was observed where no other finding reports it, and what the peers have."""
    left = {
        subject: text for subject, text in found.subjects.items() if found.part_of or subject not in found.reported_by
    }
    told = observed(result, found, left if len(left) < len(found.subjects) else None)
    others = found.peers - len(found.odd)
    if found.odd and others and set(found.odd) <= set(found.subjects):
        return f"{told} ({others} like it: {found.usual or 'as wanted'})"
    if left and len(left) < found.peers:
        return f"{told} ({len(left)} of {found.peers})" if found.odd else told
    return f"all {found.peers}: {told}" if found.peers > 1 and left else told


def compliant(result: HostResult) -> bool:
    """Return whether every check that applies to a host was judged and none failed but for waived ones."""
    return result.state == "ok" and not any(found.status in ("fail", "unknown") for found in result.findings)


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


def alike(results: Iterable[HostResult], status: str) -> dict[tuple[str, str], list[str]]:
    """Return (check, reason) of the findings of one status → hosts. What another finding reports is left out."""
    return by_key(
        ((each.check, each.reason), result.host)
        for result in results
        for each in result.findings
        if each.status == status and not each.part_of
    )


def totals(summary: Summary, compliant: int) -> list[tuple[str, str] | str]:
    """Return the counts as texts, some with a style: a severity, or one of rich."""
    parts: list[tuple[str, str] | str] = [(f"{text.count(summary.reached, 'host')} audited", "bold")]
    if summary.reached < summary.hosts:
        parts.append((f", {summary.hosts - summary.reached} not reached", "bold magenta"))
    if not summary.reached:
        return parts
    if summary.hosts > 1:
        parts.append(f", {compliant} compliant")
    parts.append(": ")
    failing = [(f"{summary.failing[each]} {each}", each) for each in reversed(SEVERITIES) if summary.failing.get(each)]
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
