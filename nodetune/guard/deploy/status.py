"""How each node is guarded, from Slurm's word and from what the guard left there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodetune.api.model import HostFacts, HostResult
from nodetune.audit import hosts as audit_hosts
from nodetune.foundation import text
from nodetune.guard.deploy import cluster, node_state
from nodetune.guard.deploy.paths import POLICY
from nodetune.guard.deploy.request import StatusRequest
from nodetune.guard.node import drain
from nodetune.guard.node.scontrol import SlurmNode

NOT_IN_INVENTORY = "not in the inventory"
TOLD = ("nodetune", "profile", "mode", "act")


@dataclass(frozen=True)
class Guard:
    """The report of a reachable node.

    `installed`: version, profile, mode and act (empty: no policy); `last_run`: Unix seconds, job and verdict; `ours`:
    whether the guard drained the node; `held`: the job and the reason that its drain by Slurm does not have yet;
    `last_reason`: what failed in the last run.
    """

    installed: Mapping[str, str] = field(default_factory=dict)
    last_run: tuple[int, str, str] | None = None
    inconclusive_runs: int = 0
    ours: bool = False
    held: tuple[str, str] | None = None
    last_reason: str = ""


@dataclass(frozen=True)
class Status:
    """One node. `guard` is None where it was not reached, and `problem` then says why. `since`: Unix time of its reason."""

    name: str
    state: str
    out_of_service: bool
    reason: str
    guard: Guard | None = None
    problem: str = ""
    since: int = 0


def run(request: StatusRequest) -> list[Status]:
    """Return the status of nodes by name. Raise ClusterError."""
    nodes = {node.name: node for node in cluster.nodes(cluster.here(), request.nodes)}
    targets = cluster.targets(request.connection, nodes)
    results = audit_hosts.probe_hosts(targets, node_state.NodeState(), request.connection) if targets else ()
    by_name = {each.host: each for each in results}
    return [of(node, by_name.get(name)) for name, node in sorted(nodes.items())]


def of(node: SlurmNode, result: HostResult | None) -> Status:
    """Return the status of a node. `result` is None if the inventory does not have it."""
    reason = text.plain(node.reason, 200) if node.out_of_service else ""
    status = Status(node.name, node.state, node.out_of_service, reason, since=int(node.since or 0))
    if result is None:
        return replace(status, problem=NOT_IN_INVENTORY)
    if result.facts is None:
        return replace(status, problem=f"{result.state}: {text.plain(result.message)}")
    return replace(status, guard=_guard(node, result.facts))


def _guard(node: SlurmNode, facts: HostFacts) -> Guard:
    policy, last = node_state.data(facts, POLICY), node_state.last_run(facts)
    notes = drain.ours(node, node_state.notes(facts)) if node.out_of_service else []
    held = next((each for each in notes if drain.AWAITS in each), None)
    return Guard(
        {name: text.plain(str(policy.get(name, "")), 60) for name in TOLD} if policy else {},
        (last[0], text.plain(last[1], 20), text.plain(last[2], 60)) if last else None,
        node_state.inconclusive_runs(facts),
        bool(notes),
        (text.plain(str(held.get("job")), 20), text.plain(str(held.get("reason")), 200)) if held else None,
        text.plain(node_state.last_reason(facts), 200),
    )
