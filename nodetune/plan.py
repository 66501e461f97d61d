"""Findings → ordered steps with before, after and disruption. Pure: nothing is applied here."""

from __future__ import annotations

from collections.abc import Iterable

from nodetune import show
from nodetune.model import DISRUPTIONS, Finding, HostResult, Step


def plan(results: Iterable[HostResult]) -> tuple[Step, ...]:
    """What would be changed, host by host, least disruptive first. Findings without a safe fix have no step."""
    steps = [_step(result.host, found) for result in results for found in result.failing() if found.fix]
    return tuple(sorted(steps, key=lambda step: (DISRUPTIONS.index(step.fix.disruption), step.check, step.host)))


def _step(host: str, found: Finding) -> Step:
    assert found.fix is not None  # noqa: S101  (for the type checker: the caller selected these)
    return Step(host, found.check, found.fix, found.observed, show.value(found.fix.value, found.fix.unit))


def by_hand(results: Iterable[HostResult]) -> dict[str, tuple[Finding, list[str]]]:
    """Failing checks that only a person can put right: id → (a finding, the hosts)."""
    found: dict[str, tuple[Finding, list[str]]] = {}
    for result in results:
        for finding in result.failing():
            if finding.fix is None:
                found.setdefault(finding.check, (finding, []))[1].append(result.host)
    return found
