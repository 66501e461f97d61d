"""The findings of an audit in sections by who acts, one line a cause: the first thing that an operator sees. Pure data.

Each writer (text, Markdown, HTML, plan) makes its own form of a `Report`.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.api.model import DISRUPTIONS, FREE, NOT_COLLECTED, SEVERITIES, Finding, HostResult, disruption_name
from nodetune.audit.summary import Summary, compliant, parts_of, summarise
from nodetune.foundation import by_key, text
from nodetune.report.sections import finding_line

BROKEN, NOW, DRAINED, HAND, UNKNOWN = NAMES = ("broken", "apply-now", "apply-drained", "by-hand", "unknown")
"""The sections, in their order."""

TITLES = {
    BROKEN: "BROKEN: take it out of service",
    NOW: "APPLY CAN FIX, nothing is interrupted",
    DRAINED: "APPLY CAN FIX, on a drained node",
    HAND: "MANUAL WORK",
    UNKNOWN: "UNKNOWN: could not be read",
}
MOST_SEVERE = SEVERITIES[::-1]
GRAVE = MOST_SEVERE[:2]
LESSER = MOST_SEVERE[-2:]
"""Findings of these severities are counted, unless they are broken."""

FEW = 8
"""Up to this many hosts are few: their values are not counted but shown."""

NEARLY_ALL = 0.9
"""A finding of at least this share of the hosts comes before those of some hosts."""

MAX_VARIANTS = 3
"""Up to this many texts about one check have a line each, on few hosts and in the section BROKEN."""

MAX_WORST = 10

COMPARE = ("audit", "explain")
"""Commands that compare hosts with each other."""

REASONS = (
    "permission denied: needs root (--become)",
    "permission denied: the pod is not privileged",
    NOT_COLLECTED,
    "not collected: the probe's time was over",
)
"""Reasons that follow the name of a fact or a file: without it, equal causes fold."""

Member = tuple[HostResult, Finding]


@dataclass(frozen=True)
class CauseLine:
    """One cause on the hosts that have it alike: what it is about, and what that is → what it will be (see finding_line.py).

    `parts` are the checks that it also reports. `others` is the number of hosts with another text than this, where
    not each has a line. `members` are the findings behind it. In the section UNKNOWN a line is one reason, and `check`
    the first that lacks a fact. `since`: the Unix time from which the history knows it on one of the hosts.
    """

    severity: str
    check: str
    subject: str
    text: str
    short: str
    hosts: tuple[str, ...]
    parts: tuple[str, ...] = ()
    others: int = 0
    members: tuple[Member, ...] = field(default=(), repr=False, compare=False)
    since: int | None = None


@dataclass(frozen=True)
class Section:
    """One of NAMES. `findings` counts those of its lines on all hosts, without parts; `command` acts on them.

    `lesser` counts causes of the same section without a line.
    """

    name: str
    findings: int
    lines: tuple[CauseLine, ...]
    command: str
    lesser: int = 0

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @property
    def hosts(self) -> list[str]:
        return sorted({host for line in self.lines for host in line.hosts})


@dataclass(frozen=True)
class Worst:
    """A host with its number of causes by severity, and the checks of the gravest."""

    host: str
    failing: Mapping[str, int]
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditReport:
    """An audit by who acts. `lesser` counts causes without a line, which the command `full` lists."""

    summary: Summary
    sections: tuple[Section, ...]
    lesser: int
    full: str
    compliant: int
    worst: tuple[Worst, ...] = ()

    @property
    def findings(self) -> int:
        """The findings on all hosts. What another finding also reports is in `parts`."""
        return sum(self.summary.failing.values())

    @property
    def parts(self) -> int:
        """The failing checks that the lines name as `+2`."""
        return self.summary.statuses.get("fail", 0) - self.findings


@dataclass(frozen=True)
class CommandOptions:
    """The options for proposed commands: those that select hosts and profile, those that select checks.

    `saved`: the facts are in a file, so that nothing can be applied. `compared`: how hosts are compared with each other.
    """

    asked: str = ""
    selected: str = ""
    saved: bool = False
    compared: str = ""

    def of(self, section: str, members: Iterable[tuple[HostResult, Finding]] = ()) -> str:
        """Return the command that acts on what a section says."""
        if section in (NOW, DRAINED):
            return self._applied(section, members)
        return self._whole("explain", f"--section {section}")

    def audit(self, more: str = "") -> str:
        return self._whole("audit", more)

    def verify(self) -> str:
        return " ".join(part for part in ("nodetune verify", self.asked) if part)

    def _applied(self, section: str, members: Iterable[tuple[HostResult, Finding]]) -> str:
        plans = self.saved or "--transport slurm" in self.asked
        if section == NOW:
            return self._whole("plan", "--max-disruption new-sessions") if plans else self._whole("apply")
        kept = [(result, found.fix.disruption) for result, found in members if found.fix]
        most = max((disruption for _, disruption in kept), key=DISRUPTIONS.index, default=DISRUPTIONS[-1])
        drain = " --drain slurm" if any("Slurm" in result.profile_reason for result, _ in kept) else ""
        reboot = " --reboot" if most == DISRUPTIONS[-1] else ""
        more = "" if plans else drain + reboot
        return self._whole("plan" if plans else "apply", f"--max-disruption {disruption_name(most)}{more}")

    def _whole(self, verb: str, more: str = "") -> str:
        compared = self.compared if verb in COMPARE else ""
        return " ".join(part for part in ("nodetune", verb, self.asked, self.selected, compared, more) if part)


def section_of(found: Finding) -> str:
    """Return the section of a failing or unknown finding: who acts on it."""
    if found.status == "unknown":
        return UNKNOWN
    if found.repair:
        return BROKEN
    if found.fix is None:
        return HAND
    return NOW if found.fix.disruption in FREE else DRAINED


def is_lesser(found: Finding) -> bool:
    """Return whether a finding is only counted."""
    return found.severity in LESSER and found.status == "fail" and not found.repair


def build(results: Sequence[HostResult], commands: CommandOptions | None = None, every: bool = False) -> AuditReport:
    """Return the report of an audit. `every`: also lines for findings of the lesser severities."""
    asked, told = commands or CommandOptions(), _Told(results)
    members: dict[str, list[Member]] = {name: [] for name in NAMES}
    lesser: Counter[str] = Counter()
    for result in results:
        for found in result.findings:
            if found.part_of or found.status not in ("fail", "unknown"):
                continue
            if is_lesser(found) and not every:
                lesser[section_of(found)] += 1
            else:
                members[section_of(found)].append((result, found))
    sections = tuple(
        replace(told.section(name, mine, asked.of(name, mine)), lesser=lesser[name])
        for name, mine in members.items()
        if mine
    )
    summary = summarise(results)
    return AuditReport(
        summary, sections, lesser.total(), asked.audit("--full"), sum(map(compliant, results)), worst(results)
    )


class _Told:
    """Makes the lines of sections. Hosts share most of their findings, as one object: each has its line made once."""

    def __init__(self, results: Sequence[HostResult]) -> None:
        self._hosts = len(results)
        self._parts = {id(result): parts_of(result.findings) for result in results}
        self._lines: dict[tuple[int, int], finding_line.FindingLine] = {}

    def section(self, name: str, members: Sequence[Member], command: str) -> Section:
        if name == UNKNOWN:
            return Section(name, len(members), tuple(_unread(members)), command)
        found = by_key(((member[1].severity, member[1].check), member) for member in members)
        told = [line for same in found.values() for line in self._check(same, many=name == BROKEN)]
        return Section(name, len(members), tuple(sorted(told, key=self._place)), command)

    def _check(self, members: Sequence[Member], *, many: bool) -> Iterator[CauseLine]:
        """Yield the lines of one check: one for each text if they are few, else one for the most frequent."""
        found = by_key((self._key(*member), member) for member in members)
        same = sorted(found.values(), key=lambda each: -len(each))
        most = MAX_VARIANTS if many or self._hosts <= FEW else 1
        alone = len(same) if len(same) <= most else most - 1
        for mine in same[:alone]:
            yield self._made(mine)
        if rest := [member for mine in same[alone:] for member in mine]:
            yield self._made(rest)

    def _key(self, result: HostResult, found: Finding) -> tuple[str, str]:
        told = self._line(result, found)
        return told.subject, told.text if self._hosts == 1 else told.short

    def _made(self, members: Sequence[Member]) -> CauseLine:
        first, told = members[0][1], [self._line(*member) for member in members]
        subject, text, short = told[0].subject, told[0].text, told[0].short
        if any(each.subject != subject for each in told):
            subject = "several devices"
        parts = dict.fromkeys(id_ for result, _ in members for id_ in self._parts[id(result)].get(first.check, ()))
        words = first.severity, first.check, subject, text if all(each.text == text for each in told) else short, short
        hosts, others = tuple(result.host for result, _ in members), sum(each.short != short for each in told)
        known = (result.since[first.check] for result, _ in members if first.check in result.since)
        return CauseLine(*words, hosts, tuple(parts), others, tuple(members), min(known, default=None))

    def _line(self, result: HostResult, found: Finding) -> finding_line.FindingLine:
        key = id(found), id(result.devices) if found.subjects else 0
        if key not in self._lines:
            self._lines[key] = finding_line.line(found, result.devices)
        return self._lines[key]

    def _place(self, line: CauseLine) -> tuple[Any, ...]:
        """Return the place in a section: the most severe first, then what nearly all hosts share, then the dearest."""
        severity, cost = line.members[0][1].rank
        return severity, len(line.hosts) < NEARLY_ALL * self._hosts, cost, -len(line.hosts), line.check


def _unread(members: Iterable[Member]) -> Iterator[CauseLine]:
    """Yield a line for each reason, the one of most checks first."""
    found = by_key((short_reason(member[1].reason), member) for member in members)
    for reason, mine in sorted(found.items(), key=lambda each: -len(each[1])):
        first, *more = dict.fromkeys(found.check for _, found in mine)
        hosts = tuple(dict.fromkeys(result.host for result, _ in mine))
        subject = text.count(1 + len(more), "check")
        yield CauseLine("unknown", first, subject, reason, reason, hosts, tuple(more), members=tuple(mine))


def short_reason(reason: str) -> str:
    """Return a reason without the leading fact or file, so that equal causes fold."""
    return next((cause for cause in REASONS if cause in reason), reason)


def worst(results: Sequence[HostResult]) -> tuple[Worst, ...]:
    """Return the hosts with the most grave findings, the worst first; none of a single host."""
    if len(results) < 2:
        return ()
    told = [Worst(result.host, Counter(found.severity for found in result.causes())) for result in results]
    grave = [each for each in told if any(each.failing.get(severity) for severity in GRAVE)]
    first = heapq.nsmallest(MAX_WORST, grave, key=lambda each: [-each.failing.get(name, 0) for name in MOST_SEVERE])
    named = {each.host for each in first}
    causes = {
        result.host: [(found.severity, found.check) for found in result.causes()]
        for result in results
        if result.host in named
    }
    return tuple(replace(each, checks=_gravest(causes[each.host])) for each in first)


def _gravest(causes: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    most = max((severity for severity, _ in causes), key=SEVERITIES.index)
    return tuple(check for severity, check in causes if severity == most)
