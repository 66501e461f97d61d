"""The verdict of a source about a host, and how it changed. Pure.

Notices hold names only: of hosts, devices, faults and states. What was observed on a host stays in the report.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.api.conclusion import OPEN, UNKNOWN, Conclusion, Examined
from nodetune.api.model import SEVERITIES, at_least
from nodetune.foundation import by_key

PASS, FAIL, LOST = "pass", "fail", "not reached"
STATES = (PASS, FAIL, UNKNOWN, LOST)
MIN_SEVERITY = "medium"
"""The severity that counts where the exit code counts none."""


@dataclass(frozen=True)
class HostVerdict:
    """`checks`: the faults that are there or unknown, with their severity, most severe first; `devices`: fault → where."""

    state: str = PASS
    checks: tuple[tuple[str, str], ...] = ()
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Notice:
    """The verdict about a host that changed."""

    host: str
    now: HostVerdict
    before: HostVerdict


def verdicts(found: Examined, fail_on: str) -> dict[str, HostVerdict]:
    """Return host → verdict, by the conclusions of this severity and above. A host that was interrupted has none, nor has one where nothing was judged."""
    counted = at_least(MIN_SEVERITY if fail_on == "never" else fail_on)
    unjudged = {each.host for each in found.examinations if each.unjudged and not each.judged}
    judged = {each.host for each in found.examinations if each.judged and each.source != "reach"}
    of_hosts: dict[str, list[Conclusion]] = {
        each.host: [] for each in found.examinations if each.host and (each.host in judged or each.host not in unjudged)
    }
    for each in found.conclusions:
        for host in each.hosts:
            of_hosts.setdefault(host, []).append(each)
    return {host: _verdict(every, counted) for host, every in sorted(of_hosts.items())}


def _verdict(every: Iterable[Conclusion], counted: tuple[str, ...]) -> HostVerdict:
    known = [each for each in every if not each.explained_by]
    if any(each.source == "reach" for each in known):
        return HostVerdict(LOST)
    for state, name in ((OPEN, FAIL), (UNKNOWN, UNKNOWN)):
        there = [each for each in known if each.state == state and each.severity in counted]
        if there:
            severities = {each.fault: each.severity for each in there}
            named = sorted(severities.items(), key=lambda each: (-SEVERITIES.index(each[1]), each[0]))
            places = by_key((each.fault, each.device.name) for each in there if each.device)
            return HostVerdict(name, tuple(named), {fault: tuple(names) for fault, names in places.items()})
    return HostVerdict()


def changes(before: Mapping[str, HostVerdict], now: Mapping[str, HostVerdict]) -> list[Notice]:
    """Return what changed. A host that was never seen is taken to have passed."""
    pairs = ((host, verdict, before.get(host, HostVerdict())) for host, verdict in sorted(now.items()))
    return [Notice(host, verdict, was) for host, verdict, was in pairs if verdict != was]


def to_data(known: Mapping[str, HostVerdict]) -> dict[str, Any]:
    return {host: {"state": each.state, "checks": [list(pair) for pair in each.checks]} for host, each in known.items()}


def from_data(data: Any) -> dict[str, HostVerdict]:
    """Return what `to_data` made; nothing of what is something else."""
    found = {}
    for host, each in data.items() if isinstance(data, dict) else ():
        try:
            pairs = tuple((str(check), str(severity)) for check, severity in each["checks"])
        except (KeyError, TypeError, ValueError):
            continue
        if each.get("state") in STATES and {severity for _, severity in pairs} <= set(SEVERITIES):
            found[host] = HostVerdict(each["state"], pairs)
    return found
