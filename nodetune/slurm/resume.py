"""Which drained nodes may take jobs again: those whose drain is provably the guard's, and whose checks pass now. Pure.

A node is judged by the policy that is installed on it, as its prolog does; where there is none, by the profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodetune import show
from nodetune.choice import Choice
from nodetune.guard import drains, judge
from nodetune.guard import policy as on_node
from nodetune.guard.program import Blind
from nodetune.guard.scontrol import Node
from nodetune.model import Finding, HostFacts, HostResult
from nodetune.outcome import FINDINGS, INCOMPLETE, OK
from nodetune.slurm import left
from nodetune.slurm.places import POLICY

STAYS, MAY, BACK = "stays", "may come back", "back"


@dataclass(frozen=True)
class Fate:
    """What becomes of one node: `state` is one of the three, `code` what it means for the exit code, `judged_by` whose
    checks it was judged by (empty: it was not judged), `check` the one that keeps it back.
    """

    name: str
    state: str
    why: str
    code: int = OK
    judged_by: str = ""
    check: str = ""


class BadPolicy(ValueError):
    """The policy that is installed on a node cannot be used here; one line."""


@dataclass(frozen=True)
class Drained:
    """A node with a drain of ours, by its own notes; `policy` is the installed one (None: there is none)."""

    node: Node
    notes: tuple[Mapping[str, Any], ...]
    policy: on_node.Policy | None = None
    about: str = ""

    @property
    def blamed(self) -> set[str]:
        """The checks that it was drained for."""
        mine = (each for each in self.notes if each.get("reason") == self.node.reason)
        return {str(name) for each in mine for name in each.get("checks") or ()}


@dataclass(frozen=True)
class Judging(Choice):
    """The audit's checks, what the guard left on the node, and what its policy may need besides."""

    besides: frozenset[str] = frozenset()

    def facts(self) -> set[str]:
        return super().facts() | left.FACTS | self.besides


def needed(found: Iterable[Drained | Fate]) -> frozenset[str]:
    """The facts that the installed policies judge by."""
    policies = (each.policy for each in found if isinstance(each, Drained) and each.policy)
    return frozenset(name for policy in policies for check in policy.checks for name in check["facts"])


def look(node: Node, result: HostResult | None) -> Drained | Fate:
    """Whether the drain is the guard's, by what it left on the node."""
    if result is None:
        return Fate(node.name, STAYS, "it is not in the inventory", INCOMPLETE)
    if result.facts is None:
        return Fate(node.name, STAYS, f"not reached: {result.state}: {show.plain(result.message)}", INCOMPLETE)
    notes = tuple(left.notes(result.facts))
    if not drains.ours(node, notes):
        return Fate(node.name, STAYS, f"the node has no note of this drain ({show.plain(node.reason, 80)})")
    try:
        return Drained(node, notes, *_policy(result.facts))
    except BadPolicy as problem:
        return Fate(node.name, STAYS, str(problem), INCOMPLETE)


def _policy(facts: HostFacts) -> tuple[on_node.Policy | None, str]:
    """The installed policy and its name. Raises BadPolicy."""
    if not left.is_there(facts, POLICY):
        return None, ""
    try:
        data = on_node.parsed(left.text(facts, POLICY))
        about = f"its installed policy, profile {show.plain(str(data.get('profile')), 60)}"
        return on_node.Policy(data, ""), about
    except (TypeError, ValueError) as problem:
        text = show.plain(str(problem), 120)
        raise BadPolicy(f"{POLICY} cannot be used: {text}; next: nodetune slurm install") from None


def decide(drained: Drained, result: HostResult) -> Fate:
    """What the node's checks say, once it was probed anew."""
    name = drained.node.name
    if result.facts is None:
        return Fate(name, STAYS, f"not reached: {result.state}: {show.plain(result.message)}", INCOMPLETE)
    judged_by = drained.about or f"profile {result.profile}, for there is no policy on it"
    try:
        found = _findings(drained, result, result.facts)
    except (Blind, TypeError, ValueError) as problem:
        return Fate(name, STAYS, f"{POLICY}: {show.plain(str(problem), 200)}", INCOMPLETE, judged_by)
    fate = replace(_fate(name, found, drained.blamed), judged_by=judged_by)
    if fate.state == MAY and not drained.node.drained:
        return replace(fate, state=STAYS, why=f"Slurm says {drained.node.state}", code=FINDINGS)
    return fate


def _findings(drained: Drained, result: HostResult, facts: HostFacts) -> list[Finding]:
    """What counts. Raises Blind where the policy names a check that this version does not have."""
    chosen, blamed = drained.policy, drained.blamed
    if chosen is None:
        return [found for found in result.findings if found.gates or found.check in blamed]
    waived = chosen.waived()
    judged = [
        replace(each, status="waived") if each.status == "fail" and each.check in waived else each
        for each in judge.findings(chosen.checks, facts)
    ]
    known = {found.check for found in judged}
    return [*judged, *(found for found in result.findings if found.check in blamed - known)]


def _fate(name: str, found: Iterable[Finding], blamed: set[str]) -> Fate:
    by_status: dict[str, list[Finding]] = {}
    for each in found:
        by_status.setdefault(each.status, []).append(each)
    failing, unknown = by_status.get("fail", []), by_status.get("unknown", [])
    if failing:
        first = failing[0]
        more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
        where = show.folded(first.subjects) if first.subjects else first.observed
        return Fate(name, STAYS, f"{first.check}: {show.plain(where, 200)}{more}", FINDINGS, check=first.check)
    if unknown:
        text = f"{unknown[0].check} is not known: {show.plain(unknown[0].reason, 200)}"
        return Fate(name, STAYS, text, INCOMPLETE, check=unknown[0].check)
    judged = {each.check for status in ("pass", "waived") for each in by_status.get(status, ())}
    if blamed - judged:
        text = (
            f"it was drained for {show.plain(', '.join(sorted(blamed - judged)), 200)}, which is not judged there now"
        )
        return Fate(name, STAYS, text, INCOMPLETE)
    return Fate(name, MAY, "its gating checks pass")
