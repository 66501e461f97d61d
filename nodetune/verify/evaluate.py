"""Figures → verdicts: compare each with its most trusted expectation. Pure.

The order of trust is: the site's baseline, the peers, the shipped figures. A baseline decides alone. Peers
that agree only prove that no part is worse than the others, so the shipped figure is also compared: eight GPUs that
are all slow agree with each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nodetune.facts.machine import Machine
from nodetune.foundation import by_key
from nodetune.statistics import outliers
from nodetune.verify import disturbance, figures, hardware_limits, reference
from nodetune.verify.baseline import Baseline, subject
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.model import PASS, PEERS, SHORT, UNKNOWN, Expectation, Figure, Verdict


def judge(
    measured: Iterable[Figure], machines: Mapping[str, Machine], baseline: Baseline | None = None
) -> list[Verdict]:
    """Return a verdict for each figure, in their order. Look for peers on the host first, then on similar hosts."""
    every = list(measured)
    inside, across = _groups([each for each in every if not disturbance.doubt(each)], machines)
    return [
        _verdict(each, machines[each.host], baseline, _peers(each, machines[each.host], inside, across))
        for each in every
    ]


Groups = Mapping[figures.Key, Sequence[Figure]]
Told = tuple[outliers.Peers, str]
"""Peers of a figure and their description."""


def _groups(every: Sequence[Figure], machines: Mapping[str, Machine]) -> tuple[Groups, Groups]:
    """Return (figures of one host that differ in the subject only, figures of similar hosts with the same subject)."""
    inside = by_key((_inside(each, machines[each.host]), each) for each in every)
    return inside, by_key((_across(each, machines[each.host]), each) for each in every)


def _inside(figure: Figure, machine: Machine) -> figures.Key:
    kind = subject(figure, machine)
    if figure.measurement in (
        "memory",
        "memory_latency",
    ):  # a node's own memory, and memory of another node, are two kinds of thing
        kind = "node→node" if "→" in figure.subject and len(set(figure.subject.split("→"))) > 1 else "node"
    host = "" if takes_two_hosts(figure.measurement) else figure.host
    return host, kind, *figures.kind(figure)


def _across(figure: Figure, machine: Machine) -> figures.Key:
    return tuple(sorted(machine.like.items())), figure.subject, *figures.kind(figure)


def _peers(figure: Figure, machine: Machine, inside: Groups, across: Groups) -> list[Told]:
    """Return the peers on the same host, and the same part of similar hosts.

    One GPU may be an outlier, or all GPUs of one host together. Disturbed figures neither have peers nor are peers.
    """
    if disturbance.doubt(figure):
        return []
    tolerance = reference.tolerance(figure.measurement, figure.metric, "peers")
    groups = (inside[_inside(figure, machine)], across[_across(figure, machine)])
    near, far = (outliers.among([each.value for each in group], tolerance, group[0].sign) for group in groups)
    return [(each, what) for each, what in ((near, _plural(figure.subject)), (far, "like hosts")) if each]


def _expectation(group: outliers.Peers, what: str) -> Expectation:
    """Return the expectation from peers; `what` is their kind in the plural."""
    if group.majority:
        told = f"{group.count - 1} other {what}: median {group.centre:.4g}"
    else:
        told = f"the best of {group.count} {what}: {group.centre:.4g}"
    return Expectation(PEERS, group.bound, told, group.centre)


def _plural(subject_: str) -> str:
    if "→" in subject_ or "↔" in subject_:
        return "pairs"
    if " #" in subject_:
        return "equal instances"
    if "/" in subject_:
        return "ports"
    stem = subject_.rstrip("0123456789")
    return {"GPU": "GPUs", "cpu": "CPUs", "node": "NUMA nodes"}.get(stem, f"{stem}s")


def _verdict(figure: Figure, machine: Machine, baseline: Baseline | None, others: Sequence[Told]) -> Verdict:
    limit = hardware_limits.of(figure, machine)
    expected = _decisive(figure, machine, baseline, others)
    if expected:
        return Verdict(figure, PASS if expected.met_by(figure) else SHORT, expected, limit)
    shipped, entry = reference.shipped(figure, machine, limit) or (None, None)
    if shipped and entry and entry.decides(shipped.met_by(figure)):
        return Verdict(figure, PASS if shipped.met_by(figure) else SHORT, shipped, limit)
    agreeing = next((each for each in others if each[0].majority), None)
    if agreeing:
        return Verdict(figure, PASS, _expectation(*agreeing), limit)
    why = disturbance.doubt(figure)
    return Verdict(figure, UNKNOWN, shipped, limit, reason=f"disturbed: {why}" if why else _unproven(entry))


def _unproven(entry: reference.Entry | None) -> str:
    if entry is None:
        return "no baseline, too few peers, no shipped figure"
    if not entry.gates:
        return "the shipped figure does not gate"
    return "no baseline, too few peers; the shipped floor is too loose to prove anything above it"


def _decisive(
    figure: Figure, machine: Machine, baseline: Baseline | None, others: Sequence[Told]
) -> Expectation | None:
    """Return the expectation that decides alone: a baseline, or peers from which this figure is an outlier."""
    own = baseline.expectation(figure, machine) if baseline else None
    if own:
        return own
    from_others = (_expectation(*each) for each in others)
    return next((each for each in from_others if not each.met_by(figure)), None)


def again(first: Verdict, second: Figure | None) -> Verdict:
    """Return the verdict after a second measurement: short only if below target and undisturbed both times."""
    if second is None or first.expected is None:
        return settled(replace(first, reason="it could not be measured again"))
    values = (*first.again, second.value)
    if first.expected.met_by(second):
        told = f"below target once ({first.figure.value:.4g}) but not when measured again"
        seen = figures.joined(first.figure, second) if len(first.figure.runs) > 1 else second
        return Verdict(seen, PASS, first.expected, first.limit, (first.figure.value,), reason=told)
    return settled(replace(first, again=values, reason="measured again, and below target again"), second)


def settled(verdict: Verdict, second: Figure | None = None) -> Verdict:
    """Return the verdict, unknown instead of short if others disturbed the figure or its second measurement."""
    doubts = [disturbance.doubt(each) for each in (verdict.figure, second) if each]
    why = next(filter(None, doubts), "")
    if verdict.status != SHORT or not why:
        return verdict
    return replace(verdict, status=UNKNOWN, disturbed=why, reason=f"below target, but disturbed: {why}")
