"""Find the slow part of real hosts: select and order them, carry out the search, and look for causes on named hosts."""

from __future__ import annotations

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
from nodetune.verify import catalogue, hardware_limits, reference, remote, run, slurm
from nodetune.verify.find_slow.host_rounds import HostRounds, RoundSettings, solo_items, usual_figures
from nodetune.verify.find_slow.model import GPU, NIC, NODE, PATH, RAIL, SOLO, Fleet, Part, Result, Round
from nodetune.verify.find_slow.search import search
from nodetune.verify.find_slow.stragglers import Floor, Straggler, confirmed, stragglers
from nodetune.verify.model import Expectation, Figure
from nodetune.verify.request import VerifyRequest
from nodetune.verify.run import HostVerification

CAUSES = ("critical", "high")
MAX_CAUSES = 5


@dataclass(frozen=True)
class SlowSearch:
    """A search that was carried out. `seconds`: of each round; `causes`: failed checks of named hosts."""

    fleet: Fleet
    result: Result
    stragglers: tuple[Straggler, ...] = ()
    unreached: tuple[HostVerification, ...] = ()
    seconds: tuple[float, ...] = ()
    causes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    unit: str = "GB/s"
    expect: float | None = None

    @property
    def left(self) -> float | None:
        """The fraction that the others are short of as a whole; None if unknown."""
        whole = self.result.whole_figure
        if self.result.whole_fault:
            return 1.0
        if self.expect and whole:
            return max(0.0, 1 - whole / self.expect)
        return self.result.left if len(self.fleet.nodes) > 2 else None

    def hosts(self, part: Part) -> list[str]:
        """Return the hosts of a part: those that it is, or that it joins."""
        return [self.fleet.nodes[node] for node in part.at] if part.kind in (NODE, GPU, NIC, RAIL, PATH) else []


def find_slow(request: VerifyRequest, show: Show) -> SlowSearch:
    """Search the selected hosts. Raise InventoryError, UserError or OSError."""
    connection = request.connection
    targets = {target.name: target for target in selected_hosts(connection, show.detail)}
    with show.phase("find-slow", len(targets), 0.0) as phase:
        seen = _reached(request, list(targets.values()), phase)
        free = [name for name, each in seen.items() if each.state == "ok"]
        fleet = ordered(free, request.leaf, show)
        rounds = _rounds(request, [targets[name] for name in fleet.nodes], seen, phase)
        machines = {name: each.machine for name, each in seen.items()}
        found = _searched(fleet, rounds, request.more_rounds, show, lambda figure: floor(figure, machines[figure.host]))
    lost = tuple(each for each in seen.values() if each.state != "ok")
    named = dict.fromkeys(host for each in found.result.culprits for host in found.hosts(each.part))
    named |= dict.fromkeys(each.host for each in found.stragglers)
    causes = _causes([targets[name] for name in named], connection)
    return replace(found, unreached=lost, causes=causes, expect=request.expect)


def _reached(request: VerifyRequest, targets: list[Target], phase: Phase) -> dict[str, HostVerification]:
    """Collect facts: which hosts answer and are free. With srun, SSH need not reach them."""
    connection, look = request.connection, run.reached
    if connection.transport == "slurm":
        connection, look = replace(connection, transport="auto"), run.reached_or_not
    seen = {}
    for target, facts, _ in audit_hosts.collect(targets, run.FACTS, connection):
        phase.step(target.name, "facts")
        seen[target.name] = look(target.name, facts, request.allow_busy)
    return seen


def ordered(hosts: Sequence[str], leaves: Sequence[str], show: Show) -> Fleet:
    """Return the fleet in the order of its leaf switches. Raise UserError."""
    if len(hosts) < 2:
        raise UserError(f"--find-slow compares hosts: {len(hosts)} can be measured, select at least 2")
    names = list(dict.fromkeys(nodeset.unfold(nodeset.fold(hosts))))
    if not leaves:
        return Fleet(tuple(names), (0,) * len(names))
    of = [[name for name in nodeset.unfold(each) if name in names] for each in leaves]
    missing = [name for name in names if sum(name in each for each in of) != 1]
    if missing:
        raise UserError(
            f"--leaf: {nodeset.fold(missing)} must be in exactly one leaf: name the hosts of every leaf switch"
        )
    filled = [(leaf, members) for leaf, members in zip(leaves, of, strict=True) if members]
    if any(len(members) < MIN_LEAF_NODES for _, members in filled):
        show.warn(f"--leaf: a leaf with fewer than {MIN_LEAF_NODES} hosts: links and uplinks are not judged")
        filled = [("", [name for _, members in filled for name in members])]
    return Fleet(
        tuple(name for _, members in filled for name in members),
        tuple(number for number, (_, members) in enumerate(filled) for _ in members),
        tuple(leaf for leaf, _ in filled),
    )


def _rounds(
    request: VerifyRequest, targets: Sequence[Target], seen: Mapping[str, HostVerification], phase: Phase
) -> HostRounds:
    measure = request.measure
    on_gpus = any(seen[target.name].machine.gpus for target in targets)
    options = {"gpus": list(measure.gpus) or None, "nccl": measure.nccl or None, "network": measure.network or None}
    given = {name: value for name, value in options.items() if value}
    solo = solo_items(on_gpus, lambda name: {"seconds": catalogue.of(name).seconds, **catalogue.of(name).item("quick")})
    own = {name: value for name, value in given.items() if name == "gpus"}
    solo = tuple({**each, "options": {**each["options"], **own}} for each in solo)
    how = slurm.measure if request.connection.transport == "slurm" else remote.measure
    wanted = RoundSettings(request.round_seconds, solo, given, dict(measure.env))
    return HostRounds(targets, how, request.connection, wanted, phase.step)


def floor(figure: Figure, machine: Machine) -> Expectation | None:
    """Return the shipped figure if being below it decides."""
    expected, entry = reference.shipped(figure, machine, hardware_limits.of(figure, machine)) or (None, None)
    return expected if expected and entry and entry.decides(met=False) else None


def _searched(fleet: Fleet, rounds: HostRounds, more: int, show: Show, least: Floor) -> SlowSearch:
    """Carry out the search round by round. Ctrl-C ends it without a result."""
    work, seconds = search(fleet, more), []
    wanted = next(work)
    while True:
        start = time.monotonic()
        answers = rounds.answer(wanted)
        seconds.append(time.monotonic() - start)
        what = text.count(len(wanted.groups), "run")
        show.note(f"round {len(seconds)}: {wanted.kind}, {what}, {seconds[-1]:.0f} s")
        if not any(each.figures or each.fault for each in answers) and wanted.kind != SOLO:
            raise UserError(_nothing(rounds))
        try:
            wanted = work.send(answers)
        except StopIteration as done:
            found = SlowSearch(
                fleet, done.value, seconds=tuple(seconds), reasons=dict(rounds.reasons), unit=rounds.unit
            )
            return replace(found, stragglers=tuple(_slow_alone(fleet, rounds, least)))


def _nothing(rounds: HostRounds) -> str:
    host, why = next(iter(rounds.reasons.items()), ("no host", "it sent no figure"))
    return f"--find-slow: no pair of hosts could be measured: {host}: {why}"


def _slow_alone(fleet: Fleet, rounds: HostRounds, least: Floor) -> list[Straggler]:
    """Return parts that are slow by themselves in two runs: the second only of their hosts and as many others."""
    first = stragglers(rounds.alone, least)
    if not first:
        return []
    usual, before = usual_figures(rounds.alone), len(rounds.alone)
    hosts = {each.host for each in first}
    others = [name for name in fleet.nodes if name not in hosts][: len(hosts)]
    again = [node for node, name in enumerate(fleet.nodes) if name in hosts or name in others]
    rounds.answer(Round(SOLO, tuple((node,) for node in again)))
    return confirmed(first, rounds.alone[before:], usual)


def _causes(targets: list[Target], connection: ConnectionOptions) -> dict[str, tuple[str, ...]]:
    """Return the serious failed checks of each named host: what may make it slow."""
    if not targets:
        return {}
    if connection.transport == "slurm":
        connection = replace(connection, transport="auto")
    found = {}
    for result in audit_hosts.audit_hosts(targets, Selection(), connection):
        lines = [f"{each.check}: {each.observed or each.title}" for each in result.causes() if each.severity in CAUSES]
        found[result.host] = tuple(lines[:MAX_CAUSES])
    return found
