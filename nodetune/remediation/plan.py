"""Findings → what is done about them on each host, with what it disrupts. Pure: nothing is applied."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodetune.api.model import DISRUPTIONS, FREE, Check, Finding, HostFacts, HostResult, disruption_name, fix_of
from nodetune.audit import evaluate, gpu_users, log_gap, summary
from nodetune.audit.selection import Selection
from nodetune.foundation import text as plain_text
from nodetune.remediation import host_changes, read_only_systems
from nodetune.remediation.host_changes import PlannedChange
from nodetune.remediation.host_view import FILES

CODE = "/usr/local/lib/nodetune/"
"""Programs of nodetune's units, which contain no settings."""

OVER = "allow it with --max-disruption"

LeftOut = tuple[tuple[Finding, str], ...]
"""Findings that are not fixed, with the reason."""


@dataclass(frozen=True)
class PlanSelection(Selection):
    """A selection of checks that also asks for the facts that carrying out their fixes takes, and for `more`."""

    more: tuple[str, ...] = ()

    @staticmethod
    def of(selection: Selection, more: Iterable[str] = ()) -> PlanSelection:
        return PlanSelection(
            selection.profiles,
            selection.site,
            selection.select,
            selection.ignore,
            files=selection.files,
            more=tuple(more),
        )

    def facts(self) -> set[str]:
        return super().facts() | facts_for(check.remedy.kind for check in self.candidates) | evaluate.raw(self.more)


def added(selection: Selection | None) -> tuple[Check, ...]:
    """Return the checks of the site file."""
    return selection.site.add if selection and selection.site else ()


@dataclass(frozen=True)
class HostPlan:
    """The plan for one host: its audit, the findings that `changes` fix, and those left out with the reason."""

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


def plan(
    result: HostResult, max_disruption: str = DISRUPTIONS[-1], in_the_way: str = "", site: Iterable[Check] = ()
) -> HostPlan:
    """Plan one host. `in_the_way` says why running work must not be disturbed there now (empty: nothing is).

    `site` are the checks of the site file: what they set on the host before stays there.
    """
    return safely(result, lambda facts: _plan(result, facts, (max_disruption, in_the_way), site))


def safely(result: HostResult, make: Callable[[HostFacts], HostPlan]) -> HostPlan:
    """Return the plan that `make` makes of a host's facts; where it fails, one of a host with bad facts."""
    if result.facts is None:
        return HostPlan(result)
    try:
        return make(result.facts)
    except Exception as problem:  # noqa: BLE001  (no host ends the work for the others)
        message = f"no plan is possible from its facts: {plain_text.plain(repr(problem), 200)}"
        return HostPlan(replace(result, state="bad facts", message=message, facts=None, findings=()))


def _plan(result: HostResult, facts: HostFacts, limits: tuple[str, str], site: Iterable[Check]) -> HostPlan:
    if why := read_only_systems.reason(facts):
        return HostPlan(result, left_out=tuple((found, why) for found in fixable(result)))
    chosen, left = select(fixable(result), *limits)
    changes, unbuilt = host_changes.build(chosen, facts, site)
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
            left.append((found, f"disruption: {name}; {OVER} {name}"))
        elif in_the_way and disruption not in FREE:
            left.append((found, f"disruption: {name}; {in_the_way}"))
        else:
            chosen.append(found)
    return chosen, tuple(left)


def is_over(why: str) -> bool:
    """Return whether a fix is left out only because it disrupts more than was asked for."""
    return OVER in why


def steps(plans: Iterable[HostPlan]) -> list[tuple[str, Finding, str]]:
    """Return (host, finding, why it is left out, if it is) of all plans.

    Least disruptive first, hosts with the same finding together.
    """
    fixed = [(plan.host, found, "") for plan in plans for found in plan.findings]
    left = [(plan.host, found, why) for plan in plans for found, why in plan.left_out]
    return sorted((*fixed, *left), key=lambda step: (*_place(step[1]), step[0]))


def after(found: Finding) -> str:
    """Return what a fix sets."""
    fix = fix_of(found)
    return plain_text.setting(fix.value, fix.unit)


def kept_in(plan: HostPlan, found: Finding) -> list[str]:
    """Return what keeps a planned fix beyond the next boot: files and masked units, else enabled ones."""
    own = [(change, set(change.get("checks", each.checks))) for each in plan.changes for change in each.changes]
    mine = [change for change, checks in own if found.check in checks]
    if any(change["change"] == "bootarg" for change in mine):
        return ["grubby"]
    written = [str(change["path"]) for change in mine if change["change"] in (*FILES, "edit")]
    files = list(dict.fromkeys(path for path in written if not path.startswith(CODE)))
    units = {str(change["unit"]): change["enabled"] for change in mine if change["change"] == "unit"}
    masked = [unit for unit, state in units.items() if state == "masked"]
    return [*files, *masked] or [unit for unit, state in units.items() if state == "enabled"]


def manual_steps(results: Iterable[HostResult]) -> dict[str, tuple[Finding, list[str]]]:
    """Return failing checks that need manual steps: id → (a finding, the hosts)."""
    found: dict[str, tuple[Finding, list[str]]] = {}
    for result in results:
        for finding in result.failing():
            if finding.fix is None:
                found.setdefault(finding.check, (finding, []))[1].append(result.host)
    return found


def unknown(results: Iterable[HostResult]) -> dict[tuple[str, str], list[str]]:
    """Return (check, the reason why it was not judged) → the hosts. What a log has lost is left out: nobody can judge it."""
    every = summary.alike(results, "unknown")
    return {(check, reason): hosts for (check, reason), hosts in every.items() if not log_gap.is_lost(reason)}


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
    return host_changes.needs(kinds) | {read_only_systems.FACT, *gpu_users.FACTS}


def edited(change: Mapping[str, Any]) -> str:
    """Describe what an edit does to a file, or return the lines that it adds."""
    given = change["with"]
    if change["how"] == "json":
        return json.dumps(given["keys"], indent=1)
    if change["how"] == "assignments":
        return "\n".join(
            f"without {name}" if value is None else f"{name}={value}" for name, value in given["values"].items()
        )
    if change["how"] == "without_lines":
        lines = [("without the line", line) for line in given["lines"]]
        lines += [("only once the line", line) for line in given.get("once", ())]
        return "\n".join(f"{how}: {plain_text.plain(line)}" for how, line in lines)
    if change["how"] == "line":
        return f"line {given['number']}: {plain_text.plain(given['new'].strip())}"
    if change["how"] in ("fstab_option", "automount_option"):
        without = f", without {', '.join(given['remove'])}" if given.get("remove") else ""
        entry = given["mount_point"] if change["how"] == "fstab_option" else f"the entry {given['key']}"
        return f"{entry}: with the option {given['option']}{without}"
    return "swap lines are commented out" if change["how"] == "fstab_no_swap" else json.dumps(dict(given))
