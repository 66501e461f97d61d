"""Find the slow part of real hosts: select and order them, execute the search, and look for causes on named hosts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodetune.audit import hosts as audit_hosts
from nodetune.audit.selection import Selection
from nodetune.facts.machine import Machine
from nodetune.foundation import UserError, nodeset, text
from nodetune.foundation.stage_output import Phase, Show
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.statistics.thresholds import MIN_LEAF_NODES
from nodetune.verify import remote, run, slurm
from nodetune.verify.find_slow.host_rounds import HostRounds, RoundSettings
from nodetune.verify.find_slow.model import GPU, NIC, NODE, PATH, RAIL, SOLO, Fleet, Part, Round, SearchResult
from nodetune.verify.find_slow.search import Search
from nodetune.verify.find_slow.stragglers import Straggler, confirmed, stragglers, usual_figures
from nodetune.verify.request import VerifyRequest
from nodetune.verify.run import HostVerification

CAUSES = ("critical", "high")
MAX_CAUSES = 5


@dataclass(frozen=True)
class SlowSearch:
    """A search that was executed. `seconds`: of each round; `causes`: failed checks of named hosts."""

    fleet: Fleet
    result: SearchResult
    stragglers: tuple[Straggler, ...] = ()
    unreached: tuple[HostVerification, ...] = ()
    seconds: tuple[float, ...] = ()
    causes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    unit: str = "GB/s"
    expect: float | None = None

    @property
    def shortfall(self) -> float | None:
        """The fraction that the joint run is below target; None if unknown."""
        figure = self.result.joint_figure
        if self.result.joint_fault:
            return 1.0
        if self.expect and figure:
            return max(0.0, 1 - figure / self.expect)
        return self.result.shortfall if len(self.fleet.nodes) > 2 else None

    def hosts(self, part: Part) -> list[str]:
        """Return the hosts of a part: those that it is, or that it joins."""
        return [self.fleet.nodes[node] for node in part.at] if part.kind in (NODE, GPU, NIC, RAIL, PATH) else []


def find_slow(request: VerifyRequest, show: Show) -> SlowSearch:
    """Search the selected hosts: plan a round, run it, add its results. Raise InventoryError, UserError or OSError.

    Ctrl-C ends it without a result.
    """
    connection, seconds = request.connection, []
    targets = {target.name: target for target in selected_hosts(connection, show.detail)}
    with show.phase("find-slow", len(targets), 0.0) as phase:
        verifications = _reached(request, list(targets.values()), phase)
        fleet = ordered(
            [name for name, verification in verifications.items() if verification.state == "ok"], request.leaf, show
        )
        machines = {name: verifications[name].machine for name in fleet.nodes}
        host_rounds = HostRounds(
            [targets[name] for name in fleet.nodes],
            slurm.measure if connection.transport == "slurm" else remote.measure,
            connection,
            RoundSettings.of(request, any(machine.gpus for machine in machines.values())),
            phase.step,
        )
        search = Search(fleet, request.more_rounds)
        while planned := search.next_round():
            start = time.monotonic()
            results = host_rounds.execute(planned)
            seconds.append(time.monotonic() - start)
            what = text.count(len(planned.groups), "run")
            show.note(f"round {len(seconds)}: {planned.kind}, {what}, {seconds[-1]:.0f} s")
            if not any(group.figures or group.fault for group in results) and planned.kind != SOLO:
                raise UserError(_no_figures(host_rounds))
            search.add(planned, results)
        result = search.result()
        solo_stragglers = _confirmed_stragglers(fleet, host_rounds, machines)
    report = SlowSearch(
        fleet,
        result,
        stragglers=tuple(solo_stragglers),
        unreached=tuple(verification for verification in verifications.values() if verification.state != "ok"),
        seconds=tuple(seconds),
        reasons=dict(host_rounds.reasons),
        unit=host_rounds.unit,
        expect=request.expect,
    )
    named = dict.fromkeys(host for culprit in report.result.culprits for host in report.hosts(culprit.part))
    named |= dict.fromkeys(straggler.host for straggler in report.stragglers)
    return replace(report, causes=_causes([targets[name] for name in named], connection))


def _reached(request: VerifyRequest, targets: list[Target], phase: Phase) -> dict[str, HostVerification]:
    """Collect facts: which hosts answer and are free. With srun, SSH need not reach them."""
    connection, verification_of = request.connection, run.reached
    if connection.transport == "slurm":
        connection, verification_of = replace(connection, transport="auto"), run.reached_or_not
    verifications = {}
    for target, facts, _ in audit_hosts.collect(targets, run.FACTS, connection):
        phase.step(target.name, "facts")
        verifications[target.name] = verification_of(target.name, facts, request.allow_busy)
    return verifications


def ordered(hosts: Sequence[str], leaves: Sequence[str], show: Show) -> Fleet:
    """Return the fleet in the order of its leaf switches. Raise UserError."""
    if len(hosts) < 2:
        raise UserError(f"--find-slow compares hosts: {len(hosts)} can be measured, select at least 2")
    names = list(dict.fromkeys(nodeset.unfold(nodeset.fold(hosts))))
    if not leaves:
        return Fleet(tuple(names), (0,) * len(names))
    by_leaf = [[name for name in nodeset.unfold(leaf) if name in names] for leaf in leaves]
    missing = [name for name in names if sum(name in members for members in by_leaf) != 1]
    if missing:
        raise UserError(
            f"--leaf: {nodeset.fold(missing)} must be in exactly one leaf: name the hosts of every leaf switch"
        )
    nonempty = [(leaf, members) for leaf, members in zip(leaves, by_leaf, strict=True) if members]
    if any(len(members) < MIN_LEAF_NODES for _, members in nonempty):
        show.warn(f"--leaf: a leaf with fewer than {MIN_LEAF_NODES} hosts: links and uplinks are not judged")
        nonempty = [("", [name for _, members in nonempty for name in members])]
    return Fleet(
        tuple(name for _, members in nonempty for name in members),
        tuple(number for number, (_, members) in enumerate(nonempty) for _ in members),
        tuple(leaf for leaf, _ in nonempty),
    )


def _no_figures(host_rounds: HostRounds) -> str:
    host, why = next(iter(host_rounds.reasons.items()), ("no host", "it sent no figure"))
    return f"--find-slow: no pair of hosts could be measured: {host}: {why}"


def _confirmed_stragglers(fleet: Fleet, host_rounds: HostRounds, machines: Mapping[str, Machine]) -> list[Straggler]:
    """Return parts that are slow by themselves in two runs: the second only of their hosts and as many others."""
    first = stragglers(host_rounds.solo_figures, machines)
    if not first:
        return []
    usual, before = usual_figures(host_rounds.solo_figures), len(host_rounds.solo_figures)
    hosts = {straggler.host for straggler in first}
    others = [name for name in fleet.nodes if name not in hosts][: len(hosts)]
    repeated = [node for node, name in enumerate(fleet.nodes) if name in hosts or name in others]
    host_rounds.execute(Round(SOLO, tuple((node,) for node in repeated)))
    return confirmed(first, host_rounds.solo_figures[before:], usual)


def _causes(targets: list[Target], connection: ConnectionOptions) -> dict[str, tuple[str, ...]]:
    """Return the serious failed checks of each named host: what may make it slow."""
    if not targets:
        return {}
    if connection.transport == "slurm":
        connection = replace(connection, transport="auto")
    causes = {}
    for result in audit_hosts.audit_hosts(targets, Selection(), connection):
        lines = [
            f"{finding.check}: {finding.observed or finding.title}"
            for finding in result.causes()
            if finding.severity in CAUSES
        ]
        causes[result.host] = tuple(lines[:MAX_CAUSES])
    return causes
