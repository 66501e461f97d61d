"""The stages of a verify: collect facts, measure, judge, and measure again what is below target."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.api.facts_view import FactUnreadError
from nodetune.api.model import HostFacts
from nodetune.audit import gpu_users
from nodetune.audit import hosts as run
from nodetune.audit.selection import ALWAYS
from nodetune.facts import machine as machines
from nodetune.facts.machine import Machine
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.live_pool import Ended
from nodetune.verify import diagnosis, disturbance, figures, retest, suites
from nodetune.verify import findings as finding
from nodetune.verify.baseline import Baseline
from nodetune.verify.catalogue import of_scope, takes_two_hosts
from nodetune.verify.evaluate import judge, settled
from nodetune.verify.model import SHORT, Figure, Unmeasured, Verdict, VerifyFinding
from nodetune.verify.suites import Item, SuiteRequest

FACTS = {*machines.FACTS, *gpu_users.FACTS, *ALWAYS}

Plan = dict[str, Any]
Event = Mapping[str, Any] | Ended
Measure = Callable[[list[Target], Callable[[Target], Plan], ConnectionOptions], Iterator[tuple[Target, Event]]]
"""The function that runs plans on hosts (see nodetune.verify.remote.measure; events: nodetune/measurements/main.py)."""

Tell = Callable[[str, str], None]
"""Receives (host, its current step) on arrival."""


Done = Callable[[str, str, str], None]
"""Receives (host, state, message) when a host has measured everything, or is not measured."""

Look = Callable[[str, HostFacts | UnreachableError, bool], "HostVerification"]
"""Makes the initial state of a host from its name, its facts (or error) and whether a busy host is measured."""


@dataclass(frozen=True)
class HostVerification:
    """The result of one host. `state` is ok, busy, interrupted or the name of a connection failure.

    `others`: other load during each measurement, as the host reports it (nodetune/measurements/host/other_load.py).
    """

    host: str
    state: str = "ok"
    message: str = ""
    machine: Machine = field(default_factory=Machine)
    verdicts: tuple[Verdict, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    findings: tuple[VerifyFinding, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    others: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)

    @property
    def statuses(self) -> list[str]:
        """The statuses of everything that was requested."""
        return [each.status for each in self.verdicts] + [each.status for each in self.unmeasured]

    @property
    def short(self) -> list[Verdict]:
        return [each for each in self.verdicts if each.status == SHORT]

    @property
    def disturbed(self) -> list[tuple[str, str]]:
        """Disturbances by measurement: such a host is not suitable for a baseline."""
        found = disturbance.lines(each.figure for each in self.verdicts)
        return list(
            dict.fromkeys(
                [*found, *((each.figure.measurement, each.disturbed) for each in self.verdicts if each.disturbed)]
            )
        )


class VerifyRun:
    """One verify over hosts. `how` measures; `tell` and `done` receive progress; `look` selects hosts to measure."""

    def __init__(
        self,
        wanted: SuiteRequest,
        connection: ConnectionOptions,
        how: Measure,
        tell: Tell,
        look: Look | None = None,
        done: Done | None = None,
    ) -> None:
        self._wanted, self._connection, self._how, self._tell, self._done = wanted, connection, how, tell, done
        self._last = False
        self._seen = look or reached
        self._verifications: dict[str, HostVerification] = {}
        self._targets: dict[str, Target] = {}
        self._figures: list[Figure] = []
        self._besides: list[Verdict] = []
        self._others: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._stopped = False

    def prove(self, targets: Sequence[Target], baseline: Baseline | None, even_if_busy: bool) -> list[HostVerification]:
        """Verify the targets in the order of host names. Ctrl-C ends it: the figures until then are judged."""
        self._targets = {target.name: target for target in targets}
        self._look(targets, even_if_busy)
        self._measure_all()
        known = {host: each.machine for host, each in self._verifications.items()}
        self._figures = figures.merged(self._figures)
        verdicts = judge(self._figures, known, baseline)
        if any(each.status == SHORT for each in verdicts) and not self._stopped:
            verdicts = self._measure_again(verdicts)
        verdicts = [settled(each) for each in verdicts]
        found = finding.findings(self._figures, known, self._wanted.env)
        return [self._whole(host, verdicts, found) for host in sorted(self._verifications)]

    @property
    def measured(self) -> list[Figure]:
        """Every figure with all its runs, for comparisons, without repeats of figures below target."""
        return self._figures

    def _look(self, targets: Sequence[Target], even_if_busy: bool) -> None:
        """Collect the facts of the hosts: their machine, and whether they are free."""
        try:
            for target, facts, _ in run.collect(list(targets), FACTS, self._connection):
                self._tell(target.name, "facts")
                self._verifications[target.name] = self._seen(target.name, facts, even_if_busy)
                self._end(target.name, lost=True)
        except KeyboardInterrupt:
            self._stop(target.name for target in targets if target.name not in self._verifications)

    @property
    def _free(self) -> list[str]:
        return [host for host, each in self._verifications.items() if each.state == "ok"]

    def _split(self) -> tuple[list[Item], list[Item]]:
        """Return (items for each host alone, items for several hosts)."""
        items = self._wanted.items
        several = suites.of_several(items, self._wanted.multi_node)
        return [item for item in items if item not in several], several

    def _measure_all(self) -> None:
        alone, several = self._split()
        for left in reversed(range(self._wanted.repeat)):
            self._last = not (left or several)
            if alone:
                self._run({host: {"measurements": alone} for host in self._free})
            self._last = not left
            if several:
                self._run(_together(sorted(self._free), several))
        self._last = False

    def _measure_again(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        short = [each for each in verdicts if each.status == SHORT]
        first, self._figures = self._figures, []
        alone, several = self._split()
        mine = {host: [each for each in short if each.figure.host == host] for host in self._free}
        items = {host: retest.items(mine[host], alone, self._verifications[host].machine.gpus) for host in self._free}
        self._run({host: {"measurements": each} for host, each in items.items() if each})
        self._run(_together(retest.meeting(short, self._free), suites.all_meet(several)))
        if any(each.figure.about.get("nodes", 1) != 1 for each in short):
            self._run(
                _together(sorted(self._free), [item for item in several if item["name"] in of_scope("collective")])
            )
        second, self._figures = figures.merged(self._figures), first
        self._besides = retest.others(verdicts, second)
        return retest.confirmed(verdicts, second)

    def _run(self, plans: Mapping[str, Plan]) -> None:
        """Run the plans on all hosts at once and handle their events."""
        plans = {host: plan for host, plan in plans.items() if plan["measurements"]}
        if not plans or self._stopped:
            return
        env = dict(self._wanted.env)
        targets = [self._targets[host] for host in plans]
        left, first = dict.fromkeys(plans), len(self._figures)
        self._others = {}
        try:
            for target, event in self._how(
                targets, lambda target: {**plans[target.name], "env": env}, self._connection
            ):
                if self._take(target.name, event):
                    left.pop(target.name, None)
        except KeyboardInterrupt:
            self._stop(left)
        self._figures[first:] = [disturbance.marked(each, self._others) for each in self._figures[first:]]

    def _take(self, host: str, event: Event) -> bool:
        """Handle one event of one host. Return True if it was the last."""
        if isinstance(event, Ended):
            before = self._verifications[host]
            why = event.problem or before
            seconds = before.seconds + event.seconds
            self._verifications[host] = replace(before, state=why.state, message=why.message, seconds=seconds)
            self._end(host, lost=not self._last)
            return True
        if "record" in event:
            found = figures.of(host, event["record"])
            if isinstance(found, Figure):
                self._figures.append(found)
            else:
                self._add(host, unmeasured=[found])
        if "done" in event and isinstance(event["done"].get("others"), Mapping):
            name, told = str(event["done"].get("measurement")), event["done"]["others"]
            self._others[host, name] = told
            known = self._verifications[host].others
            others = {**known, name: (*known.get(name, ()), told)}
            self._verifications[host] = replace(self._verifications[host], others=others)
        for kind in ("step", "note"):
            if kind in event:
                text = f"{event[kind].get('measurement')}: {event[kind].get('text')}"
                self._tell(host, text)
                self._add(host, notes=[text] if kind == "note" else [])
        return False

    def _add(self, host: str, unmeasured: Sequence[Unmeasured] = (), notes: Sequence[str] = ()) -> None:
        """Add a note to a host; equal notes once, however often it was measured."""
        old = self._verifications[host]
        self._verifications[host] = replace(
            old,
            unmeasured=tuple(dict.fromkeys((*old.unmeasured, *unmeasured))),
            notes=tuple(dict.fromkeys((*old.notes, *notes))),
        )

    def _end(self, host: str, lost: bool) -> None:
        """Report that a host is done; with `lost`, only if it is not measured any more."""
        verification = self._verifications[host]
        if self._done and not (lost and verification.state == "ok"):
            self._done(host, verification.state, verification.message)

    def _stop(self, hosts: Iterable[str]) -> None:
        self._stopped = True
        for host in hosts:
            message = "the run was stopped before this host finished"
            self._verifications[host] = replace(
                self._verifications.get(host, HostVerification(host)), state="interrupted", message=message
            )

    def _whole(self, host: str, verdicts: Sequence[Verdict], found: Iterable[VerifyFinding]) -> HostVerification:
        verification = self._verifications[host]
        mine = [each for each in verdicts if each.figure.host == host]
        besides = [each for each in self._besides if each.figure.host == host]
        besides += [each for each in verdicts if each.figure.host != host and takes_two_hosts(each.figure.measurement)]
        named = diagnosis.named(mine, besides, verification.machine)
        return replace(
            verification,
            verdicts=tuple(named),
            findings=(*finding.wrong_data(verification.unmeasured), *(each for each in found if each.host == host)),
        )


def reached(host: str, facts: HostFacts | UnreachableError, even_if_busy: bool) -> HostVerification:
    """Return the state of a host; only hosts that are reached and free are measured."""
    if isinstance(facts, UnreachableError):
        return HostVerification(host, facts.state, facts.message)
    used = "" if even_if_busy else _used(facts)
    if used:
        return HostVerification(host, "busy", f"{used}; --allow-busy measures anyway", machines.of(facts))
    return HostVerification(host, machine=machines.of(facts))


def reached_or_not(host: str, facts: HostFacts | UnreachableError, even_if_busy: bool) -> HostVerification:
    """Return the state of a host that is not started by SSH: SSH need not reach it."""
    if not isinstance(facts, UnreachableError):
        return reached(host, facts, even_if_busy)
    note = f"its hardware is unknown, so no baseline or shipped figure applies to it: {facts.message}"
    return HostVerification(host, machine=machines.UNKNOWN, notes=(note,))


def _used(facts: HostFacts) -> str:
    try:
        who = gpu_users.users(facts)
    except FactUnreadError as problem:
        return str(problem)
    return f"its GPUs are in use by {who}" if who else ""


def _together(hosts: Sequence[str], items: Sequence[Item]) -> dict[str, Plan]:
    """Return the same plan for all of these hosts as one group."""
    return {host: {"measurements": list(items), "group": {"hosts": list(hosts)}} for host in hosts}
