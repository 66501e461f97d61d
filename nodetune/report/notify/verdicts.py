"""The verdict of an audit about a host, and how it changed. Pure.

Notices hold names only: of hosts, checks and states. What was observed on a host stays in the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nodetune.api.model import SEVERITIES, HostResult
from nodetune.audit.summary import at_least

PASS, FAIL, UNKNOWN, LOST = "pass", "fail", "unknown", "not reached"
STATES = (PASS, FAIL, UNKNOWN, LOST)
MIN_SEVERITY = "medium"
"""The severity that counts where the exit code counts none."""


@dataclass(frozen=True)
class Verdict:
    """`checks`: those that fail or are unknown, with their severity, most severe first."""

    state: str = PASS
    checks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Notice:
    """The verdict about a host that changed."""

    host: str
    now: Verdict
    before: Verdict


def verdicts(results: Iterable[HostResult], fail_on: str) -> dict[str, Verdict]:
    """Return host → verdict, by the findings of this severity and above. A host that was interrupted has none."""
    counted = at_least(MIN_SEVERITY if fail_on == "never" else fail_on)
    return {each.host: _verdict(each, counted) for each in results if each.state != "interrupted"}


def _verdict(result: HostResult, counted: tuple[str, ...]) -> Verdict:
    if result.state != "ok":
        return Verdict(LOST)
    for state in (FAIL, UNKNOWN):
        found = {each.check: each.severity for each in result.findings if each.status == state and not each.part_of}
        named = sorted(found.items(), key=lambda each: (-SEVERITIES.index(each[1]), each[0]))
        kept = tuple((check, severity) for check, severity in named if severity in counted)
        if kept:
            return Verdict(state, kept)
    return Verdict()


def changes(before: Mapping[str, Verdict], now: Mapping[str, Verdict]) -> list[Notice]:
    """Return what changed. A host that was never seen is taken to have passed."""
    pairs = ((host, verdict, before.get(host, Verdict())) for host, verdict in sorted(now.items()))
    return [Notice(host, verdict, was) for host, verdict, was in pairs if verdict != was]


def to_data(known: Mapping[str, Verdict]) -> dict[str, Any]:
    return {host: {"state": each.state, "checks": [list(pair) for pair in each.checks]} for host, each in known.items()}


def from_data(data: Any) -> dict[str, Verdict]:
    """Return what `to_data` made; nothing of what is something else."""
    found = {}
    for host, each in data.items() if isinstance(data, dict) else ():
        try:
            pairs = tuple((str(check), str(severity)) for check, severity in each["checks"])
        except (KeyError, TypeError, ValueError):
            continue
        if each.get("state") in STATES and {severity for _, severity in pairs} <= set(SEVERITIES):
            found[host] = Verdict(each["state"], pairs)
    return found
