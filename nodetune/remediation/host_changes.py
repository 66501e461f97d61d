"""Findings → the changes that fix them on one host: data for playbooks/engine/remediate.yml. Pure.

`nodetune/remediation/builders/` has what each kind of remedy becomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import groupby
from typing import Any

from nodetune.api.facts_view import FactAbsentError, FactUnreadError
from nodetune.api.model import DISRUPTIONS, FREE, Check, Finding, Fix, HostFacts, fix_of
from nodetune.foundation import UserError
from nodetune.foundation import text as plain_text
from nodetune.remediation.host_view import FILES, HostView, UnfixableError

NEEDS = ("host.os", "own.files")
"""Facts that every kind may look at."""

TIMED = ("link",)
"""Kinds of change that revert on their own unless they are confirmed in time."""


@dataclass(frozen=True)
class PlannedChange:
    """One kind of fix at one level of disruption on one host: what is changed together, with what is run afterwards.

    `name` is unique in a host's plan, `checks` are those that it fixes, and `changes` are as nodetune_change takes them.
    `guard` has the conditions for the host; `notes` are remarks for the plan.
    `idle` are the numbers of the changes that have nothing to do, as far as the facts show.
    """

    name: str
    disruption: str
    checks: tuple[str, ...]
    changes: tuple[Mapping[str, Any], ...]
    guard: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    idle: frozenset[int] = frozenset()

    @property
    def busy(self) -> list[Mapping[str, Any]]:
        """The changes that have something to do: what a plan shows."""
        return [change for number, change in enumerate(self.changes) if number not in self.idle]

    def data(self) -> dict[str, Any]:
        """Return the data for nodetune_change."""
        return {
            "group": self.name,
            "disruption": self.disruption,
            "timed": any(change["change"] in TIMED for change in self.changes),
            "guard": dict(self.guard),
            "checks": list(self.checks),
            "changes": [dict(change) for change in self.changes],
        }


Unbuilt = list[tuple[Finding, str]]
"""Findings that no change can fix, with the reason."""


def needs(kinds: Iterable[str]) -> set[str]:
    """Return the facts that the builders of these kinds need."""
    modules = [_builder(kind) for kind in set(kinds) - {"manual"}]
    return set(NEEDS).union(*(getattr(module, "NEEDS", ()) for module in modules))


def build(
    findings: Sequence[Finding], facts: HostFacts, site: Iterable[Check] = ()
) -> tuple[list[PlannedChange], Unbuilt]:
    """Return the changes that fix these findings of one host, least disruptive first, and the unfixable findings."""
    chosen = sorted(
        findings, key=lambda found: (DISRUPTIONS.index(_group_of(found)[0]), _group_of(found)[1], found.check)
    )
    try:
        host = HostView(facts, chosen, site)
    except FactUnreadError as problem:
        return [], [(found, str(problem)) for found in chosen]
    made: list[PlannedChange] = []
    unbuilt: Unbuilt = []
    for (disruption, kind), same in groupby(chosen, key=_group_of):
        taken = kind in {change.name for change in made}
        change = _planned(f"{kind}, {disruption}" if taken else kind, list(same), host, unbuilt)
        if change:
            made.append(change)
    return _in_view_of_later(made), unbuilt


def _group_of(found: Finding) -> tuple[str, str]:
    """Return the key of findings that are changed together: (disruption, kind)."""
    fix = fix_of(found)
    return fix.disruption, fix.kind


def _in_view_of_later(made: Sequence[PlannedChange]) -> list[PlannedChange]:
    """Make each file also accept what later changes make of it, so that a repeated plan changes nothing."""
    later: dict[str, list[str]] = {}
    found: list[PlannedChange] = []
    for each in reversed(made):
        changes = [_accepting(change, later) for change in reversed(each.changes)]
        found.append(replace(each, changes=tuple(reversed(changes))))
    return found[::-1]


def _accepting(change: Mapping[str, Any], later: dict[str, list[str]]) -> Mapping[str, Any]:
    if change["change"] not in FILES or not change["content"]:
        return change
    texts = later.setdefault(change["path"], [])
    others = [text for text in texts if text != change["content"]]
    texts.append(change["content"])
    return {**change, "or": others} if others else change


def _planned(name: str, findings: list[Finding], host: HostView, unbuilt: Unbuilt) -> PlannedChange | None:
    """Return the change of one kind. Add a finding that cannot be fixed to `unbuilt` and continue with the others."""
    buildable: list[Finding] = []
    for found in findings:
        reason = _attempt([fix_of(found)], host)[1]
        if reason:
            unbuilt.append((found, reason))
        else:
            buildable.append(found)
    host.notes = []
    wanted = [fix_of(found) for found in buildable]
    made, reason = _attempt([fix for number, fix in enumerate(wanted) if fix not in wanted[:number]], host)
    if reason:
        unbuilt += [(found, reason) for found in buildable]
    if not made:
        return None
    idle = frozenset(number for number, change in enumerate(made) if host.is_as_wanted(change))
    host.wrote(made)
    disruption = wanted[0].disruption
    guard = {} if disruption in FREE else {"gpu_idle": True}
    checks = tuple(found.check for found in buildable)
    return PlannedChange(name, disruption, checks, tuple(made), guard, tuple(host.notes), idle)


def _attempt(fixes: list[Fix], host: HostView) -> tuple[list[dict[str, Any]], str]:
    """Return the changes of fixes of one kind, or the reason why there are none."""
    try:
        _require_ceilings(fixes, host)
        return (_builder(fixes[0].kind).changes(fixes, host) if fixes else []), ""
    except (UnfixableError, FactAbsentError, FactUnreadError, UserError) as problem:
        return [], plain_text.plain(problem)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as problem:
        # A host may send any shape of data, as in nodetune.audit: no changes then, and no traceback.
        return [], f"the facts have an unexpected shape: {plain_text.plain(repr(problem), 120)}"


def _require_ceilings(fixes: list[Fix], host: HostView) -> None:
    """Raise UnfixableError for a fix that a kernel parameter keeps from its end, unless this plan sets that too."""
    for fix in fixes:
        ceiling = fix.params.get("ceiling")
        if ceiling and not host.sets_sysctl(ceiling["sysctl"]):
            raise UnfixableError(f"{ceiling['reason']}: raise {ceiling['sysctl']} first, then plan again")


def _builder(kind: str) -> Any:
    return import_module(f"nodetune.remediation.builders.{kind}")
