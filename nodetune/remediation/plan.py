"""Findings → what is done about them on each host, with what it disrupts. Pure: nothing is applied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodetune.api.model import DISRUPTIONS, Finding, HostResult, disruption_name, fix_of
from nodetune.audit import gpu_users
from nodetune.foundation import text as plain_text
from nodetune.remediation import builders
from nodetune.remediation.builders import FREE, PlannedChange

LeftOut = tuple[tuple[Finding, str], ...]
"""Findings that are not fixed, with the reason."""


@dataclass(frozen=True)
class HostPlan:
    """What is done on one host: its audit, the findings that `changes` fix, and those that are left out and why."""

    result: HostResult
    findings: tuple[Finding, ...] = ()
    left_out: LeftOut = ()
    changes: tuple[PlannedChange, ...] = ()

    @property
    def host(self) -> str:
        return self.result.host

    @property
    def disturbs(self) -> bool:
        """Whether it disturbs running work."""
        return any(change.disruption not in FREE for change in self.changes)

    def without_facts(self) -> HostPlan:
        """Return the same plan without the facts, to save memory."""
        return replace(self, result=replace(self.result, facts=None))


def plan(result: HostResult, max_disruption: str = DISRUPTIONS[-1], in_the_way: str = "") -> HostPlan:
    """Plan one host. `in_the_way` says why running work must not be disturbed there now (empty: nothing is)."""
    if result.facts is None:
        return HostPlan(result)
    chosen, left = select(fixable(result), max_disruption, in_the_way)
    changes, unbuilt = builders.build(chosen, result.facts)
    cannot = {found.check for found, _ in unbuilt}
    findings = tuple(found for found in chosen if found.check not in cannot)
    return HostPlan(result, findings, (*left, *unbuilt), tuple(changes))


def fixable(result: HostResult) -> list[Finding]:
    """Return the failing findings that have a fix, least disruptive first."""
    return sorted((found for found in result.failing() if found.fix), key=_place)


def _place(found: Finding) -> tuple[int, str]:
    return DISRUPTIONS.index(fix_of(found).disruption), found.check


def select(findings: Iterable[Finding], max_disruption: str, in_the_way: str) -> tuple[list[Finding], LeftOut]:
    """Return (what may be fixed, what is left out and why)."""
    most = DISRUPTIONS.index(max_disruption)
    chosen: list[Finding] = []
    left: list[tuple[Finding, str]] = []
    for found in findings:
        disruption, name = fix_of(found).disruption, disruption_name(fix_of(found).disruption)
        if DISRUPTIONS.index(disruption) > most:
            left.append((found, f"disruption: {name}; allow it with --max-disruption {name}"))
        elif in_the_way and disruption not in FREE:
            left.append((found, f"disruption: {name}; {in_the_way}"))
        else:
            chosen.append(found)
    return chosen, tuple(left)


def steps(plans: Iterable[HostPlan]) -> list[tuple[str, Finding, str]]:
    """Return (host, finding, why it is left out, if it is) of all plans.

    Least disruptive first, hosts with the same finding together.
    """
    fixed = [(plan.host, found, "") for plan in plans for found in plan.findings]
    left = [(plan.host, found, why) for plan in plans for found, why in plan.left_out]
    return sorted((*fixed, *left), key=lambda step: (*_place(step[1]), step[0]))


def after(found: Finding) -> str:
    """Return what a fix sets: a structure as in its file, anything else in readable form."""
    fix = fix_of(found)
    return (
        plain_text.plain(json.dumps(fix.value))
        if isinstance(fix.value, Mapping)
        else plain_text.value(fix.value, fix.unit)
    )


def manual_steps(results: Iterable[HostResult]) -> dict[str, tuple[Finding, list[str]]]:
    """Return failing checks that need manual steps: id → (a finding, the hosts)."""
    found: dict[str, tuple[Finding, list[str]]] = {}
    for result in results:
        for finding in result.failing():
            if finding.fix is None:
                found.setdefault(finding.check, (finding, []))[1].append(result.host)
    return found


def alike(plans: Iterable[HostPlan]) -> list[tuple[tuple[PlannedChange, ...], list[str]]]:
    """Return (changes, the hosts with exactly these changes), for every host with changes."""
    found: dict[str, tuple[tuple[PlannedChange, ...], list[str]]] = {}
    for plan in plans:
        if plan.changes:
            key = json.dumps([change.data() for change in plan.changes], sort_keys=True)
            found.setdefault(key, (plan.changes, []))[1].append(plan.host)
    return list(found.values())


def facts_for(kinds: Iterable[str]) -> set[str]:
    """Return the facts that planning needs for these remedy kinds, in addition to those of the checks."""
    return builders.needs(kinds) | set(gpu_users.FACTS)


def edited(change: Mapping[str, Any]) -> str:
    """Describe what an edit does to a file, or return the lines that it adds."""
    given = change["with"]
    if change["how"] == "json":
        return json.dumps(given["keys"], indent=1)
    if change["how"] == "assignments":
        return "\n".join(f"{name}={value}" for name, value in given["values"].items())
    if change["how"] == "fstab_option":
        without = f", without {', '.join(given['remove'])}" if given["remove"] else ""
        return f"{given['mount_point']}: with the option {given['option']}{without}"
    return "swap lines are commented out" if change["how"] == "fstab_no_swap" else json.dumps(dict(given))
