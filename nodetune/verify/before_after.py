"""The effect of an apply in figures: hosts are measured just before their changes and again afterwards."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nodetune.foundation import by_key, text
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.verify import compare, figures, remote, suites
from nodetune.verify.compare import SAME, UNSURE, WORSE, FigureChange
from nodetune.verify.model import FAILED, SHORT, Figure, Verdict, VerifyFinding
from nodetune.verify.run import HostVerification, Measure, Tell, VerifyRun
from nodetune.verify.suites import SuiteRequest

BEFORE, AFTER = "before", "after"
UNCHANGED, GONE = "unchanged", "gone"
"""Why a figure has no second value: its host was not changed, or it could not be measured again."""

STOPPED = "the run was stopped while hosts were measured"

QUICK_SECONDS = 60.0
"""Upper limit in minutes for the quick suite on eight GPUs. For other suites only the deadlines are known."""

Keep = Callable[[str, Sequence[HostVerification]], None]
"""Records the results `before` or `after` each time that a batch was measured."""


@dataclass(frozen=True)
class HostMissing:
    """Missing figures. `when` is before or after; `state` is that of the host, or failed, gone, unchanged."""

    host: str
    when: str
    state: str
    message: str


@dataclass(frozen=True)
class BeforeAfterResult:
    """The figures of all changed hosts. `late` are the verifications after the changes."""

    wanted: SuiteRequest
    changes: tuple[FigureChange, ...]
    missing: tuple[HostMissing, ...]
    late: tuple[HostVerification, ...]

    @property
    def worse(self) -> list[FigureChange]:
        return [each for each in self.changes if each.status == WORSE]

    @property
    def short(self) -> list[Verdict]:
        """Figures below target, whether or not the changes caused them."""
        return [each for one in self.late for each in one.short]

    @property
    def findings(self) -> list[VerifyFinding]:
        return [found for one in self.late for found in one.findings if found.status == SHORT]

    @property
    def code(self) -> int:
        """5 if a figure became worse or is below target, 3 if something is unknown, otherwise 0."""
        if self.worse or self.short or self.findings:
            return TOO_SLOW
        unknown = any(each.state != UNCHANGED for each in self.missing)
        unsure = bool(self.late) and all(each.status == UNSURE for each in self.changes)
        return INCOMPLETE if unknown or unsure else OK


@dataclass(frozen=True)
class HostMeasurement:
    """One measurement of a host: its verification and the figures with all their runs."""

    verification: HostVerification
    figures: tuple[Figure, ...]


class BeforeAfter:
    """Measures the hosts of a rollout before and after their changes, batch by batch. `keep` records the results."""

    def __init__(
        self,
        wanted: SuiteRequest,
        targets: Iterable[Target],
        connection: ConnectionOptions,
        measure: Measure,
        tell: Tell,
        keep: Keep,
    ) -> None:
        self._wanted, self._connection, self._measure, self._tell, self._keep = wanted, connection, measure, tell, keep
        self._targets = {target.name: target for target in targets}
        self._early: dict[str, HostMeasurement] = {}
        self._late: dict[str, HostMeasurement] = {}
        self._first: dict[str, HostMeasurement] = {}
        """The figures of slower hosts from before their second measurement."""
        self._batch: list[str] = []

    @property
    def worse(self) -> set[str]:
        """Hosts that became slower."""
        return {each.before.host for each in self._changes() if each.status == WORSE}

    def before(self, hosts: Sequence[str]) -> str:
        """Measure a batch of hosts before their changes. Return the reason if the run must stop here."""
        self._batch = list(hosts)
        self._early |= self._measured(hosts)
        self._keep(BEFORE, _in_order(self._early))
        return _stopped(self._early)

    def after(self, hosts: Sequence[str]) -> str:
        """Measure changed hosts. Measure slower figures once more before the changes are blamed."""
        known = self._with_partners([host for host in hosts if self._early[host].figures])
        self._late |= self._measured(known)
        slower = self._with_partners(sorted(self.worse & set(known)))
        if slower and not _stopped(self._late):
            again = {host: each for host, each in self._measured(slower).items() if each.verification.state == "ok"}
            self._first |= {host: self._late[host] for host in again}
            self._late |= again
        self._keep(AFTER, _in_order(self._late))
        return _stopped(self._late)

    def _with_partners(self, hosts: list[str]) -> list[str]:
        """Return the hosts to measure: in pairs all of the batch, so that each meets the hosts that it met before."""
        return [host for host in self._batch if self._early[host].figures] if hosts and self._wanted.pairs else hosts

    def result(self) -> BeforeAfterResult:
        """Return everything once the rollout is over."""
        return BeforeAfterResult(
            self._wanted, tuple(self._changes()), tuple(self._missing()), tuple(_in_order(self._late))
        )

    def _measured(self, hosts: Sequence[str]) -> dict[str, HostMeasurement]:
        if not hosts:
            return {}
        verify_run = VerifyRun(self._wanted, self._connection, self._measure, self._tell)
        found = verify_run.prove([self._targets[host] for host in hosts], None, even_if_busy=False)
        return {
            one.host: HostMeasurement(one, tuple(each for each in verify_run.measured if each.host == one.host))
            for one in found
        }

    def _changes(self) -> list[FigureChange]:
        early = _figures(self._early)
        return confirmed(
            compare.compare(early, _figures(self._late)), compare.compare(early, _figures(self._first)), self._first
        )

    def _missing(self) -> list[HostMissing]:
        return [
            *(lack for each in _in_order(self._early) for lack in _lacks(each, BEFORE)),
            *(lack for each in _in_order(self._late) for lack in _lacks(each, AFTER)),
            *gone(self._early, self._late),
        ]


def confirmed(
    changes: Iterable[FigureChange], first: Iterable[FigureChange], twice: Iterable[str]
) -> list[FigureChange]:
    """Return the figures that were worse both times, for hosts that were measured twice afterwards."""
    again = set(twice)
    kept = {figures.place(each.before) for each in first if each.status == WORSE}
    return [
        replace(each, status=SAME)
        if each.status == WORSE and each.before.host in again and figures.place(each.before) not in kept
        else each
        for each in changes
    ]


def gone(early: Mapping[str, HostMeasurement], late: Mapping[str, HostMeasurement]) -> list[HostMissing]:
    """Return the figures from before without a value afterwards."""
    known = {figures.place(each) for each in _figures(late)}
    found = []
    for host in sorted(early):
        names = [each.name for each in early[host].figures if figures.place(each) not in known]
        if host not in late and names:
            found.append(HostMissing(host, AFTER, UNCHANGED, "it was not changed"))
        elif names and late[host].verification.state == "ok":
            found += [HostMissing(host, AFTER, GONE, name) for name in dict.fromkeys(names)]
    return found


def _lacks(one: HostVerification, when: str) -> list[HostMissing]:
    """Return why a host was not measured, and failed measurements. Skipped measurements are not missing."""
    if one.state != "ok":
        reason = one.message.partition("; --allow-busy")[0].removeprefix(f"{one.host}: ")
        return [HostMissing(one.host, when, one.state, reason)]
    lost = (each for each in one.unmeasured if each.status == FAILED)
    failed = by_key((each.reason, each.name) for each in lost)
    if not failed and not one.verdicts:
        return [HostMissing(one.host, when, FAILED, _nothing(one))]
    return [HostMissing(one.host, when, FAILED, f"{text.names(names)}: {reason}") for reason, names in failed.items()]


def _nothing(one: HostVerification) -> str:
    reasons = dict.fromkeys(each.reason for each in one.unmeasured)
    return f"nothing could be measured{': ' if reasons else ''}{'; '.join(reasons)}"


def _figures(seen: Mapping[str, HostMeasurement]) -> list[Figure]:
    return [each for host in sorted(seen) for each in seen[host].figures]


def _in_order(seen: Mapping[str, HostMeasurement]) -> list[HostVerification]:
    return [seen[host].verification for host in sorted(seen)]


def _stopped(seen: Mapping[str, HostMeasurement]) -> str:
    return STOPPED if any(each.verification.state == "interrupted" for each in seen.values()) else ""


def once(wanted: SuiteRequest) -> float:
    """Return the maximum seconds for one measurement of a host."""
    known = {item["name"] for item in suites.suite("quick")} if wanted.suite == "quick" and not wanted.only else set()
    others = sum(remote.seconds_of(item) for item in wanted.items if item["name"] not in known)
    return others + (QUICK_SECONDS if known else 0)


def duration(wanted: SuiteRequest, batches: int) -> str:
    """Describe the time that the measurements before and after will take."""
    quick = wanted.suite == "quick"
    minutes = max(1, round(2 * wanted.repeat * once(wanted) / 60))
    each = f" for each of {batches} batches" if batches > 1 else ""
    return f"--verify measures the hosts {wanted.repeat} times before and {wanted.repeat} times after their changes (suite {wanted.suite}): {'about' if quick else 'at most'} {minutes} minutes{each}, and half as much again if something became slower"
