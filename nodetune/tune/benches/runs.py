"""Measurements of one trial on the hosts: figures, failures, and what happened on the hosts meanwhile."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from nodetune.api.facts_view import FactAbsentError, FactUnreadError, value_of
from nodetune.api.model import HostFacts
from nodetune.audit import hosts as facts_run
from nodetune.foundation import text
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.tune.model import BenchError, Case, Setting, Trial
from nodetune.verify import disturbance, figures
from nodetune.verify.findings import WRONG
from nodetune.verify.model import FAILED, Figure, Unmeasured
from nodetune.verify.run import Event, Measure

XIDS = ("xid.events", "xid.nvswitch", "xid.fallen_off_bus")
"""Facts of the kernel log."""

RIVALS = ("another verify is running", "another tuning holds settings")
"""Parts of the host's message about another measurement (nodetune/measurements/main.py, host/temporary_settings.py)."""

UNRESTORED = ("not restored", "settings of this host: ")
"""The host's message if it could not restore settings (nodetune/measurements/host/temporary_settings.py)."""

AS_ROOT = "settings are changed as root only"
"""The host's message to users other than root (nodetune/measurements/host/temporary_settings.py)."""

Faults = frozenset[tuple[str, ...]]
"""Lines of the kernel log that the driver wrote: (host, device, number, time, text)."""


@dataclass
class TrialFigures:
    """The results of a trial. `problem`: a host was lost; `others`: other load, by (host, measurement)."""

    found: list[Figure] = field(default_factory=list)
    missing: list[Unmeasured] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    others: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    problem: str = ""

    @property
    def wrong(self) -> str:
        """The wrong data, if any."""
        return self._reason(WRONG)

    @property
    def failure(self) -> str:
        """The reason why it could not be measured."""
        return self.problem or next((each.reason for each in self.missing if each.status == FAILED), "")

    @property
    def rival(self) -> str:
        """The other measurement that already runs on a host: the setting itself is not at fault."""
        return self._reason(RIVALS)

    @property
    def unrestored(self) -> str:
        """The settings that the host could not restore. If another process restores them meanwhile, it is a rival."""
        return self._reason(UNRESTORED, but=RIVALS)

    def _reason(self, words: Sequence[str], but: Sequence[str] = ()) -> str:
        reasons = (each.reason for each in self.missing if not any(word in each.reason for word in but))
        return next((reason for reason in reasons if any(word in reason for word in words)), "")

    @property
    def skipped(self) -> str:
        return next((of_host(each.host, each.reason) for each in self.missing), "")

    @property
    def disturbance(self) -> str:
        return next((each.disturbance for each in self.found if each.disturbance), "")


def measured(
    targets: Sequence[Target],
    items: Sequence[Mapping[str, Any]],
    env: Mapping[str, str],
    how: Measure,
    connection: ConnectionOptions,
) -> TrialFigures:
    """Run items of a plan on all hosts together. If interrupted, end everything on the hosts and raise."""
    plan: dict[str, Any] = {"measurements": [dict(item) for item in items], "env": dict(env)}
    if len(targets) > 1:
        plan["group"] = {"hosts": sorted(target.name for target in targets)}
    came = TrialFigures()
    events = how(list(targets), lambda _target: dict(plan), connection)
    with closing(events):  # type: ignore[type-var]  # remote.measure and slurm.measure are generators
        for target, event in events:
            _take(came, target.name, event)
    came.found = [disturbance.marked(each, came.others) for each in figures.merged(came.found)]
    return came


def _take(came: TrialFigures, host: str, event: Event) -> None:
    if not isinstance(event, Mapping):  # the host has ended
        if event.problem:
            came.problem = came.problem or of_host(host, event.problem.message)
    elif "record" in event:
        found = figures.of(host, event["record"])
        (came.found if isinstance(found, Figure) else came.missing).append(found)  # type: ignore[arg-type]
    elif "done" in event and isinstance(event["done"].get("others"), Mapping):
        came.others[host, str(event["done"].get("measurement"))] = event["done"]["others"]
    elif "note" in event:
        came.notes.append(text.plain(event["note"].get("text", "")))


def trial(setting: Setting, cases: Sequence[Case], came: TrialFigures, values: Mapping[str, float]) -> Trial:
    """Return the trial of one measurement of a setting. Raise BenchError if a host could not restore its settings."""
    if came.unrestored:
        raise BenchError(f"{came.unrestored}: set it manually")
    if AS_ROOT in came.failure:
        raise BenchError(f"{came.failure}: -b becomes root")
    missing = [case.id for case in cases if case.id not in values]
    if came.wrong:
        return Trial(setting, banned=came.wrong)
    if came.rival:
        return Trial(setting, disturbed=came.rival)
    if came.failure or missing:
        return Trial(setting, failed=came.failure or came.skipped or f"not measured: {', '.join(missing)}")
    return Trial(setting, {case.id: values[case.id] for case in cases}, disturbed=came.disturbance)


def facts(targets: Sequence[Target], names: Iterable[str], connection: ConnectionOptions) -> dict[str, HostFacts | str]:
    """Return the facts of each host, or the error."""
    found: dict[str, HostFacts | str] = {}
    for target, each, _ in facts_run.collect(list(targets), set(names), connection):
        found[target.name] = each.message if isinstance(each, UnreachableError) else each
    return found


def faults(of: Mapping[str, HostFacts | str]) -> tuple[Faults, str]:
    """Return the driver's reports in the kernel logs, and why those of a host are unknown."""
    found: set[tuple[str, ...]] = set()
    unknown = ""
    for host, given in of.items():
        for name in XIDS:
            events = value(given, name)
            if isinstance(events, str):
                unknown = unknown or of_host(host, events)
            else:
                found |= {(host, *(str(each.get(key)) for key in ("bdf", "xid", "time", "text"))) for each in events}
    return frozenset(found), unknown


def value(facts: HostFacts | str, name: str) -> Any:
    """Return the value of a fact, or a text with the reason why there is none."""
    if isinstance(facts, str):
        return facts
    try:
        return value_of(name, facts.get(name))
    except FactAbsentError:
        return []
    except FactUnreadError as problem:
        return str(problem)


def of_host(host: str, why: str) -> str:
    """Return `host: reason`, without repeating a host in the reason."""
    return why if why.startswith(f"{host}: ") else f"{host}: {why}"


def in_words(new: Faults) -> str:
    """Return `gpu1: Xid 31 on 0000:18:00.0: MMU Fault …` for the first, with the number of the others."""
    host, bdf, number, _, said = min(new)
    more = f", and {len(new) - 1} more" if len(new) > 1 else ""
    return f"{host}: Xid {number} on {bdf}: {text.plain(said, 120)}{more}"
