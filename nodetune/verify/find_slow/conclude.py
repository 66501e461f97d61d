"""From a search to what it concludes: the parts that it names, those that it suspects, and what it proved good. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import (
    MEASURED,
    SUSPECTED,
    Conclusion,
    Examination,
    Examined,
    Judged,
    Next,
    unreached,
)
from nodetune.api.device import Device
from nodetune.foundation import nodeset, text
from nodetune.statistics.thresholds import SLOW_PART_CHANCE
from nodetune.verify.find_slow import labels
from nodetune.verify.find_slow.model import GPU, HANG, LINK, NIC, NODE, PATH, UPLINK, WRONG, Culprit, Doubt, Part
from nodetune.verify.find_slow.run import SlowSearch
from nodetune.verify.find_slow.stragglers import Straggler

SOURCE = "find-slow"
FLEET = "fleet-slow"
BROKEN = {HANG: "part-hangs", WRONG: "part-gives-wrong-data", "failed": "part-fails"}
KINDS = {GPU: "gpu", NIC: "nic", PATH: "link", LINK: "link", UPLINK: "link"}


def concluded(found: SlowSearch, now: int) -> Examined:
    """Return what a search concludes. `now`: Unix time of its end."""
    states = [(name, "ok", "", now) for name in found.fleet.nodes]
    reached = unreached(
        [*states, *((each.host, each.state, each.message, now) for each in found.unreached)], __version__
    )
    every = (*_culprits(found, now), *_alone(found, now), *_doubts(found, now), *_whole(found, now))
    return reached + Examined(every, tuple(_examinations(found, now)))


def _culprits(found: SlowSearch, now: int) -> Iterator[Conclusion]:
    for culprit in found.result.culprits:
        evidence = labels.evidence(culprit, found.fleet)
        yield _named(culprit.part, culprit.fault, culprit.loss, found, now, evidence, _chance(culprit))


def _chance(culprit: Culprit) -> float:
    return min(1.0, SLOW_PART_CHANCE * exp(-min(culprit.odds, 50.0)))


def _named(
    part: Part, broken: str, loss: float, found: SlowSearch, now: int, evidence: str, chance: float | None
) -> Conclusion:
    row = faults.row(BROKEN.get(broken, f"{part.kind}-slow"))
    hosts = tuple(found.hosts(part))
    causes = [f"{host}: {line}" for host in hosts for line in found.causes.get(host, ())]
    return Conclusion(
        row.id,
        SOURCE,
        hosts,
        row.severity,
        f"{labels.name(part, found.fleet)}: {labels.loss(loss, broken)}",
        now,
        _device(part, found),
        sure=MEASURED,
        chance=chance,
        observed=round(-loss, 4),
        evidence=(evidence, *causes),
        who=row.who,
        next=_next(part, hosts),
    )


def _device(part: Part, found: SlowSearch) -> Device | None:
    if part.kind == NODE:
        return None
    name = labels.name(part, found.fleet)
    if part.kind == GPU:
        return Device(f"GPU{part.rail}", kind="gpu")
    return Device(
        name.partition(" ")[2] if len(part.at) == 1 and part.rail is not None else name, kind=KINDS.get(part.kind, "")
    )


def _next(part: Part, hosts: tuple[str, ...]) -> Next:
    if part.kind == GPU:
        return Next("verify", ("--only", "gpu_load", "--gpu", str(part.rail)), hosts)
    if part.kind == PATH:
        return Next("verify", ("--suite", "nccl", "--multi-node"), hosts)
    return Next("audit", (), hosts) if hosts else Next(text="look at the ports and counters of its switches")


def _alone(found: SlowSearch, now: int) -> Iterator[Conclusion]:
    for each in found.stragglers:
        row = faults.row("gpu-slow" if each.subject.startswith("GPU") else "node-slow")
        yield Conclusion(
            row.id,
            SOURCE,
            (each.host,),
            row.severity,
            f"{each.host} {text.plain(each.subject)}: {labels.loss(each.loss)} {labels.alone(each)}",
            now,
            Device(text.plain(each.subject), kind="gpu") if each.subject.startswith("GPU") else None,
            f"{each.metric} by itself",
            sure=MEASURED,
            chance=each.chance or None,
            observed=round(-each.loss, 4),
            evidence=(labels.alone(each),),
            who=row.who,
            next=_audit(each),
        )


def _audit(each: Straggler) -> Next:
    return Next("audit", (), (each.host,))


def _doubts(found: SlowSearch, now: int) -> Iterator[Conclusion]:
    for each in found.result.doubts:
        first, *others = each.between
        names = tuple(labels.name(part, found.fleet) for part in others)
        named = _named(first, "", each.loss, found, now, labels.doubt(each, found), None)
        yield _suspected(named, each, names, now)


def _suspected(named: Conclusion, each: Doubt, others: tuple[str, ...], now: int) -> Conclusion:
    more = ("--find-slow", "--more-rounds", str(each.rounds)) if each.rounds else ()
    return Conclusion(
        named.fault,
        SOURCE,
        named.hosts,
        "medium",
        f"{named.statement}, or {text.names(list(others))}" if others else named.statement,
        now,
        named.device,
        sure=SUSPECTED,
        alternatives=others,
        observed=named.observed,
        evidence=named.evidence,
        who=named.who,
        next=Next("verify", more) if more else named.next,
    )


def _whole(found: SlowSearch, now: int) -> Iterator[Conclusion]:
    """Yield that all others as one are short of what is expected, and no part explains it."""
    if found.left:
        row = faults.row(FLEET)
        yield Conclusion(
            FLEET, SOURCE, (), row.severity, labels.proof(found), now, about=_about(found), sure=MEASURED,
            observed=round(-found.left, 4), who=row.who, next=Next("verify", ("--find-slow",)),
        )  # fmt: skip


def _about(found: SlowSearch) -> str:
    return nodeset.fold(found.fleet.nodes)


def _examinations(found: SlowSearch, now: int) -> Iterator[Examination]:
    """Yield what was proved: the hosts that reached as one what is expected have no slow part, nor path between them."""
    doubtful = {host for each in found.result.doubts for part in each.between for host in found.hosts(part)}
    whole = {found.fleet.nodes[node] for node in found.result.whole}
    good = whole - doubtful if found.left is not None and not found.left else set()
    every = tuple(Judged(each.id) for each in faults.of_source(SOURCE) if each.id != FLEET)
    why = "the hosts as one did not reach what is expected" if found.left else "no run of the hosts as one"
    for host in found.fleet.nodes:
        judged = every if host in good else ()
        unjudged = {} if judged else {f"{NODE}-slow": "named or suspected" if host not in whole - doubtful else why}
        yield Examination(SOURCE, host, now, __version__, judged, unjudged)
    yield Examination(SOURCE, "", now, __version__, _of_fleet(found, bool(good)))


def _of_fleet(found: SlowSearch, is_good: bool) -> tuple[Judged, ...]:
    """Return what is proved of the fleet: its links, if there is no doubt about them, and that it is not slow as a whole."""
    if not is_good:
        return ()
    doubtful = any(part.kind in (LINK, UPLINK) for each in found.result.doubts for part in each.between)
    links = () if doubtful else (Judged("link-slow"), Judged("uplink-slow"), *map(Judged, BROKEN.values()))
    return (Judged(FLEET, _about(found)), *links)
