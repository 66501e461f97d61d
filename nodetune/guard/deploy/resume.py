"""Resume drained nodes: those whose drain is provably the guard's, and whose checks pass now.

A node is judged by the policy that is installed on it, as its prolog does; without one, by the profile.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodetune.api.conclusion import Action
from nodetune.api.model import Finding, HostFacts, HostResult
from nodetune.audit import run as audit_run
from nodetune.audit.devices import line
from nodetune.audit.selection import Selection
from nodetune.foundation import UserError, by_key
from nodetune.foundation import text as plain_text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.foundation.stage_output import Show
from nodetune.guard.deploy import cluster, node_state
from nodetune.guard.deploy.paths import POLICY
from nodetune.guard.deploy.request import ResumeRequest
from nodetune.guard.node import drain, gating_checks
from nodetune.guard.node import policy as on_node
from nodetune.guard.node.invocation import InconclusiveError
from nodetune.guard.node.scontrol import ScontrolError, Slurm, SlurmNode

STAYS, MAY, BACK = "stays", "may come back", "back"


@dataclass(frozen=True)
class Fate:
    """The decision about one node.

    `state` is one of the three; `code` counts for the exit code; `judged_by` says whose checks were used (empty: none);
    `check` is the one that keeps the node drained.
    """

    name: str
    state: str
    why: str
    code: int = OK
    judged_by: str = ""
    check: str = ""


class PolicyError(UserError):
    """The policy that is installed on a node cannot be used here; one line."""


@dataclass(frozen=True)
class Drained:
    """A node that the guard drained: its records of the drain, and the installed policy, if any."""

    node: SlurmNode
    notes: tuple[Mapping[str, Any], ...]
    policy: on_node.Policy | None = None
    about: str = ""

    @property
    def blamed(self) -> set[str]:
        """The checks that it was drained for."""
        return {str(name) for each in self.notes for name in each.get("checks") or ()}


@dataclass(frozen=True)
class Judging(Selection):
    """The audit's checks, the guard's files on the node, and additional facts that its policy may need."""

    besides: frozenset[str] = frozenset()

    def facts(self) -> set[str]:
        return super().facts() | node_state.FACTS | self.besides


def prepare(request: ResumeRequest, show: Show) -> list[tuple[Drained | Fate, Fate]]:
    """Decide about the nodes that the guard may have drained; change nothing. Raise ClusterError."""
    drained = {node.name: node for node in cluster.nodes(cluster.here(), request.nodes) if drain.claimed(node)}
    return _judged(drained, request, show) if drained else []


def carry_out(judged: Iterable[tuple[Drained | Fate, Fate]]) -> Iterator[Fate]:
    """Resume the nodes that may come back, and yield what happens to each node."""
    slurm = cluster.here()
    for looked, fate in judged:
        yield _resumed(slurm, looked, fate) if fate.state == MAY and isinstance(looked, Drained) else fate


def actions(found: Iterable[Fate]) -> list[Action]:
    """Return what was done to nodes, for the history."""
    return [
        Action("resumed", each.name, int(time.time()), "nodetune guard resume", each.why)
        for each in found
        if each.state == BACK
    ]


def _judged(drained: Mapping[str, SlurmNode], request: ResumeRequest, show: Show) -> list[tuple[Drained | Fate, Fate]]:
    """Decide about the drains, and judge the nodes whose drain is the guard's."""
    judging = Judging(request.selection.profiles, request.selection.site)
    probed = _probed(drained, request, judging, show)
    looked = {name: look(node, probed.get(name)) for name, node in sorted(drained.items())}
    besides = needed(looked.values()) - judging.facts()
    if besides:  # a site's own checks, which this machine does not know
        ours = {name: drained[name] for name, each in looked.items() if isinstance(each, Drained)}
        probed |= _probed(ours, request, replace(judging, besides=besides), show)
    return [(each, decide(each, probed[name]) if isinstance(each, Drained) else each) for name, each in looked.items()]


def _probed(
    nodes: Mapping[str, SlurmNode], request: ResumeRequest, judging: Judging, show: Show
) -> dict[str, HostResult]:
    targets = cluster.targets(request.connection, nodes)
    results = audit_run.with_facts(targets, judging, request.connection, show) if targets else []
    return {each.host: each for each in results}


def _resumed(slurm: Slurm, drained: Drained, fate: Fate) -> Fate:
    """Check again: its reason may have changed during the probe."""
    try:
        if not drain.ours(slurm.node(fate.name), drained.notes):
            return replace(fate, state=STAYS, why="its drain reason has just changed")
        slurm.resume(fate.name)
    except ScontrolError as problem:
        return replace(fate, state=STAYS, why=str(problem), code=INCOMPLETE)
    return replace(fate, state=BACK)


def needed(found: Iterable[Drained | Fate]) -> frozenset[str]:
    """Return the facts that the installed policies need."""
    policies = (each.policy for each in found if isinstance(each, Drained) and each.policy)
    return frozenset(name for policy in policies for check in policy.checks for name in check["facts"])


def look(node: SlurmNode, result: HostResult | None) -> Drained | Fate:
    """Return whether the drain is the guard's, from what the guard left on the node."""
    if result is None:
        return Fate(node.name, STAYS, "it is not in the inventory", INCOMPLETE)
    if result.facts is None:
        return Fate(node.name, STAYS, f"not reached: {result.state}: {plain_text.plain(result.message)}", INCOMPLETE)
    notes = tuple(drain.ours(node, node_state.notes(result.facts)))
    if not notes:
        return Fate(node.name, STAYS, f"the node has no record of this drain ({plain_text.plain(node.reason, 80)})")
    try:
        return Drained(node, notes, *_policy(result.facts))
    except PolicyError as problem:
        return Fate(node.name, STAYS, str(problem), INCOMPLETE)


def _policy(facts: HostFacts) -> tuple[on_node.Policy | None, str]:
    """Read the installed policy and describe it. Raise PolicyError."""
    if not node_state.is_there(facts, POLICY):
        return None, ""
    try:
        data = on_node.parsed(node_state.text(facts, POLICY))
        about = f"its installed policy, profile {plain_text.plain(str(data.get('profile')), 60)}"
        return on_node.Policy(data, ""), about
    except (TypeError, ValueError) as problem:
        text = plain_text.plain(str(problem), 120)
        raise PolicyError(f"{POLICY} cannot be used: {text}; next: nodetune guard install") from None


def decide(drained: Drained, result: HostResult) -> Fate:
    """Decide by the checks on a node that was probed again."""
    name = drained.node.name
    if result.facts is None:
        return Fate(name, STAYS, f"not reached: {result.state}: {plain_text.plain(result.message)}", INCOMPLETE)
    judged_by = drained.about or f"profile {result.profile}, because it has no policy"
    try:
        found = _findings(drained, result, result.facts)
    except (InconclusiveError, TypeError, ValueError) as problem:
        return Fate(name, STAYS, f"{POLICY}: {plain_text.plain(str(problem), 200)}", INCOMPLETE, judged_by)
    fate = replace(_fate(name, found, drained.blamed), judged_by=judged_by)
    if fate.state == MAY and not drained.node.drained:
        return replace(fate, state=STAYS, why=f"Slurm reports {drained.node.state}", code=FINDINGS)
    return fate


def _findings(drained: Drained, result: HostResult, facts: HostFacts) -> list[Finding]:
    """Return the findings that count. Raise InconclusiveError if this version lacks a check of the policy."""
    chosen, blamed = drained.policy, drained.blamed
    if chosen is None:
        return [found for found in result.findings if found.gates or found.check in blamed]
    waived = chosen.waived()
    judged = [
        replace(each, status="waived") if each.status == "fail" and each.check in waived else each
        for each in gating_checks.findings(chosen.checks, facts)
    ]
    known = {found.check for found in judged}
    return [*judged, *(found for found in result.findings if found.check in blamed - known)]


def _fate(name: str, found: Iterable[Finding], blamed: set[str]) -> Fate:
    by_status = by_key((each.status, each) for each in found)
    failing, unknown = by_status.get("fail", []), by_status.get("unknown", [])
    if failing:
        first = failing[0]
        more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
        return Fate(name, STAYS, f"{plain_text.plain(line(first), 200)}{more}", FINDINGS, check=first.check)
    if unknown:
        text = f"{unknown[0].check} is unknown: {plain_text.plain(unknown[0].reason, 200)}"
        return Fate(name, STAYS, text, INCOMPLETE, check=unknown[0].check)
    judged = {each.check for status in ("pass", "waived") for each in by_status.get(status, ())}
    if blamed - judged:
        text = f"it was drained for {plain_text.plain(', '.join(sorted(blamed - judged)), 200)}, which is not judged there now"
        return Fate(name, STAYS, text, INCOMPLETE)
    return Fate(name, MAY, "its gating checks pass")
