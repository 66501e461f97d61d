"""How each node is guarded, from Slurm's word and from what the guard left there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodetune import show
from nodetune.guard import drains
from nodetune.guard.scontrol import Node
from nodetune.model import HostFacts, HostResult
from nodetune.slurm import left
from nodetune.slurm.places import POLICY

TOLD = ("nodetune", "profile", "mode", "act")


@dataclass(frozen=True)
class Guard:
    """What a node that was reached tells. `installed`: version, profile, mode and act (empty: no policy); `last_run`: Unix
    seconds, job and verdict; `ours`: whether the node is out of service by the guard's own drain.
    """

    installed: Mapping[str, str] = field(default_factory=dict)
    last_run: tuple[int, str, str] | None = None
    blind_runs: int = 0
    ours: bool = False


@dataclass(frozen=True)
class Status:
    """One node. `guard` is None where it was not reached, and `problem` then says why."""

    name: str
    state: str
    out_of_service: bool
    reason: str
    guard: Guard | None = None
    problem: str = ""


def of(node: Node, result: HostResult | None) -> Status:
    """The status of a node; `result` is None where the inventory does not have it."""
    reason = show.plain(node.reason, 200) if node.out_of_service else ""
    given = (node.name, node.state, node.out_of_service, reason)
    if result is None:
        return Status(*given, problem="not in the inventory")
    if result.facts is None:
        return Status(*given, problem=f"{result.state}: {show.plain(result.message)}")
    return Status(*given, guard=_guard(node, result.facts))


def _guard(node: Node, facts: HostFacts) -> Guard:
    policy, last = left.data(facts, POLICY), left.last_run(facts)
    return Guard(
        {name: show.plain(str(policy.get(name, "")), 60) for name in TOLD} if policy else {},
        (last[0], show.plain(last[1], 20), show.plain(last[2], 60)) if last else None,
        left.blind_runs(facts),
        node.out_of_service and drains.ours(node, left.notes(facts)),
    )
