"""The status of hosts: open faults by who acts, since when, what was done, and which hosts are unknown. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nodetune import checks
from nodetune.api import faults
from nodetune.api.conclusion import ACCEPTED, OPEN, WAIVED, WHO, Action, Conclusion
from nodetune.api.conclusion_rules import is_failing, leaders
from nodetune.api.model import SEVERITIES, at_least
from nodetune.audit import explain
from nodetune.checks import fleet_comparisons
from nodetune.facts.saved import AHEAD_SECONDS
from nodetune.foundation import by_key, exit_codes
from nodetune.history.closing import Open
from nodetune.report.sections import short_reason

DAY = 86400
HOST_STATES = NEVER, STALE, UNKNOWN, FRESH = ("never", "stale", "unknown", "examined")
"""never: nobody examined it. stale: not for a while. unknown: some faults could not be judged. examined: all of them were."""

NO_EXAMINATION = ("reach", "trend", "episodes", "watch", "late-ranks", "ras")
"""Sources that examine no host: they reach it, or judge the history or a job."""

Seen = tuple[str, str, int, Mapping[str, str]]
"""Source, host, time of the last examination, fault → why it could not be judged."""


@dataclass(frozen=True)
class Known:
    """Everything known, from a history or from documents. `hosts` names those that nothing else names, too.

    `damaged`: the history has lost some of it.
    """

    open: Sequence[Open] = ()
    examined: Sequence[Seen] = ()
    actions: Sequence[Action] = ()
    hosts: Iterable[str] = ()
    damaged: bool = False


@dataclass(frozen=True)
class Limits:
    """Limits: until when a host is examined, from when on actions are shown, and from which severity on faults count."""

    now: int
    stale: int = 7 * DAY
    since: int = 30 * DAY
    fail_on: str = "medium"


@dataclass(frozen=True)
class Host:
    """One host: source → its last examination, (source, fault) → why it could not be judged, and since when it is drained (0: not)."""

    name: str
    state: str
    examined: Mapping[str, int]
    unjudged: Mapping[tuple[str, str], str]
    drained: int = 0

    @property
    def last(self) -> int:
        """The time of the last examination by any source; 0 for none."""
        return max(self.examined.values(), default=0)


@dataclass(frozen=True)
class Entry:
    """A fault that is open, with those that it explains."""

    known: Open
    parts: tuple[Open, ...] = ()

    @property
    def of(self) -> Conclusion:
        return self.known.conclusion


@dataclass(frozen=True)
class Line:
    """Equal faults of hosts that the same command is about."""

    entries: tuple[Entry, ...]
    hosts: tuple[str, ...]

    @property
    def of(self) -> Conclusion:
        """The first of its conclusions, for what they share."""
        return self.entries[0].of

    @property
    def since(self) -> int:
        return min(each.known.since for each in self.entries)

    @property
    def unproven(self) -> int:
        """The time since when examinations say nothing of one of them; 0 if all were seen again."""
        return min((each.known.unproven for each in self.entries if each.known.unproven), default=0)

    @property
    def parts(self) -> tuple[str, ...]:
        """The faults that it also reports."""
        return tuple(dict.fromkeys(part.conclusion.fault for each in self.entries for part in each.parts))

    @property
    def statement(self) -> str:
        """The sentence that all share, or the title of the fault with the number of values."""
        said = dict.fromkeys(each.of.statement for each in self.entries)
        if len(said) == 1 and self.of.statement:
            return self.of.statement
        return f"{title(self.of.fault)} ({len(said)} values)" if len(said) > 1 else title(self.of.fault)

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices; what a fault without a device is about."""
        every = (each.of.device.name if each.of.device else each.of.about for each in self.entries)
        return tuple(dict.fromkeys(filter(None, every)))


@dataclass(frozen=True)
class Standing:
    """The status of hosts. `entries` are open; `waived` and accepted ones are counted. `host`: only this one was asked for."""

    limits: Limits
    hosts: Mapping[str, Host]
    entries: tuple[Entry, ...]
    waived: tuple[Open, ...]
    actions: tuple[Action, ...]
    host: str = ""

    def of_state(self, state: str) -> list[Host]:
        """Return the hosts of one of HOST_STATES."""
        return [each for each in self.hosts.values() if each.state == state]

    @property
    def code(self) -> int:
        """The exit code."""
        incomplete = any(each.state != FRESH for each in self.hosts.values())
        failing = is_failing((each.of for each in self.entries), self.limits.fail_on)
        return exit_codes.of_status(failing=failing, incomplete=incomplete)

    @cached_property
    def open(self) -> Counter[str]:
        """Severity → the number of open faults of hosts, each counted once for all its devices."""
        faults_of_hosts = {(each.of.severity, *each.of.kind[:3]) for each in self.entries}
        return Counter(severity for severity, *_ in faults_of_hosts)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Equal faults as one: the worst first, of these what most hosts have."""
        alike = by_key((_key(each.of), each) for each in self.entries)
        made = [
            Line(tuple(same), tuple(dict.fromkeys(host for each in same for host in each.of.hosts)))
            for same in alike.values()
        ]
        return tuple(
            sorted(made, key=lambda line: (-SEVERITIES.index(line.of.severity), -len(line.hosts), line.of.rank))
        )

    def sections(self, lines: Iterable[Line]) -> Iterator[tuple[str, list[Line]]]:
        """Yield who acts, with the lines."""
        of = by_key((line.of.who, line) for line in lines)
        yield from ((who, of[who]) for who in WHO if who in of)

    @property
    def unread(self) -> list[tuple[str, str, list[str], list[str]]]:
        """Return source, reason, faults and hosts of what could not be judged, what concerns most hosts first."""
        pairs = (
            ((source, short_reason(why)), (fault, host.name))
            for host in self.of_state(UNKNOWN)
            for (source, fault), why in host.unjudged.items()
        )
        told = [
            (source, why, list(dict.fromkeys(one for one, _ in both)), list(dict.fromkeys(host for _, host in both)))
            for (source, why), both in by_key(pairs).items()
        ]
        return sorted(told, key=lambda each: (-len(each[3]), -len(each[2]), each[:2]))

    def entries_of(self) -> dict[str, list[Entry]]:
        """Return host → what is open on it, the worst first; the fleet's own under an empty name."""
        found = by_key((host, each) for each in self.entries for host in each.of.hosts or ("",))
        return {host: sorted(same, key=lambda each: each.of.rank) for host, same in sorted(found.items())}


def standing(known: Known, limits: Limits, only: Iterable[str] | None = None, host: str = "") -> Standing:
    """Return the status of hosts. `only`: these hosts, known or not; `host`: this one alone."""
    named = _named(known) if only is None else dict.fromkeys(only)
    if host:
        named = {host: None}
    every = [_complete(each) for each in known.open if _is_about(each.conclusion, named, host)]
    opened = [each for each in every if each.conclusion.state == OPEN]
    actions = sorted((each for each in known.actions if each.host in named), key=lambda each: each.at)
    drained = _drained(actions)
    looked = by_key((seen[1], seen) for seen in known.examined)
    counted = frozenset(at_least(limits.fail_on))
    severity_of = _Severities()
    hosts = {
        name: _host(name, looked.get(name, ()), limits, drained.get(name, 0), lambda one: severity_of[one] in counted)
        for name in sorted(named)
    }
    return Standing(
        limits,
        hosts,
        tuple(_entries(opened)),
        tuple(each for each in every if each.conclusion.state in (WAIVED, ACCEPTED)),
        tuple(each for each in actions if each.at >= limits.now - limits.since),
        host,
    )


def _named(known: Known) -> dict[str, None]:
    names = dict.fromkeys(known.hosts)
    names |= dict.fromkeys(seen[1] for seen in known.examined if seen[1])
    return names | dict.fromkeys(host for each in known.open for host in each.conclusion.hosts)


def _is_about(each: Conclusion, named: Mapping[str, None], host: str) -> bool:
    return any(one in named for one in each.hosts) if each.hosts else not host


def _complete(each: Open) -> Open:
    """Return a fault of an earlier edition, which kept names alone, with the severity that it has today."""
    of = each.conclusion
    if of.statement:
        return each
    return replace(each, conclusion=replace(of, severity=severity(of.fault) or of.severity))


def _entries(opened: Sequence[Open]) -> Iterator[Entry]:
    leading = leaders([each.conclusion for each in opened])
    parts = by_key((above, opened[place]) for place, above in enumerate(leading) if above != place)
    for place, above in enumerate(leading):
        if above == place:
            yield Entry(opened[place], tuple(parts.get(place, ())))


def _drained(actions: Iterable[Action]) -> dict[str, int]:
    """Return host → since when it is drained: whose last drain nothing has ended. `actions`: the oldest first."""
    found: dict[str, int] = {}
    for each in actions:
        if each.kind == "drained":
            found.setdefault(each.host, each.at)
        elif each.kind in ("resumed", "readmitted"):
            found.pop(each.host, None)
    return found


def _host(name: str, looked: Iterable[Seen], limits: Limits, drained: int, counts: Callable[[str], bool]) -> Host:
    """Return a host. Sources that only reached it, or read the history, did not examine it; nor did any in the future."""
    examined: dict[str, int] = {}
    reasons: dict[str, Mapping[str, str]] = {}
    for source, _, at, unjudged in looked:
        if source not in NO_EXAMINATION and examined.get(source, 1) <= at <= limits.now + AHEAD_SECONDS:
            before = reasons[source] if examined.get(source) == at else {}  # as the other end of a path
            examined[source], reasons[source] = at, {**before, **unjudged} if before else unjudged
    left = {(one, fault): why for one, of in reasons.items() for fault, why in of.items() if counts(fault)}
    last = max(examined.values(), default=0)
    state = NEVER if not last else STALE if last < limits.now - limits.stale else UNKNOWN if left else FRESH
    return Host(name, state, examined, left, drained)


def _key(each: Conclusion) -> tuple[object, ...]:
    return each.who, each.severity, each.fault, each.next.verb, each.next.words


class _Severities(dict[str, str]):
    """Fault → severity, each found once."""

    def __missing__(self, fault: str) -> str:
        found = self[fault] = severity(fault) or "medium"
        return found


def named(each: Conclusion) -> str:
    """Return the device of a conclusion and what it is about: `GPU3 gemm bf16`, or one of them if it says both."""
    device = each.device.name if each.device else ""
    return each.about if device in each.about.split() else f"{device} {each.about}".strip()


def severity(fault: str) -> str:
    """Return the severity of a fault as it comes with nodetune; empty for those of a site."""
    row = faults.of(fault)
    return row.severity if row else explain.severity(fault)


def title(fault: str) -> str:
    """Return the title of a fault; the fault itself for those of a site."""
    known = faults.of(fault) or fleet_comparisons.every().get(fault)
    if known is None and fault in checks.catalogue():
        return checks.load(fault).title
    return known.title if known else fault
