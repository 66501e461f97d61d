"""From a search to what it concludes: the parts that it names, those that it suspects, and what it proved good. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
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

SOURCE = "find-slow"
FLEET = "fleet-slow"
BROKEN = {HANG: "part-hangs", WRONG: "part-gives-wrong-data", "failed": "part-fails"}
KINDS = {GPU: "gpu", NIC: "nic", PATH: "link", LINK: "link", UPLINK: "link"}


def concluded(search: SlowSearch, now: int) -> Examined:
    """Return what a search concludes. `now`: Unix time of its end."""
    states = [(name, "ok", "", now) for name in search.fleet.nodes]
    reached = unreached(
        [
            *states,
            *((lost.host, lost.state, lost.message, now) for lost in search.unreached),
        ],
        __version__,
    )
    conclusions = (*_culprits(search, now), *_stragglers(search, now), *_doubts(search, now), *_joint_run(search, now))
    return reached + Examined(conclusions, tuple(_examinations(search, now)))


def _culprits(search: SlowSearch, now: int) -> Iterator[Conclusion]:
    for culprit in search.result.culprits:
        evidence = labels.evidence(culprit, search.fleet)
        yield _named(culprit.part, culprit.fault, culprit.loss, search, now, evidence, _chance(culprit))


def _chance(culprit: Culprit) -> float:
    return min(1.0, SLOW_PART_CHANCE * exp(-min(culprit.odds, 50.0)))


def _named(
    part: Part, broken: str, loss: float, search: SlowSearch, now: int, evidence: str, chance: float | None
) -> Conclusion:
    hosts = _hosts(part, search)
    causes = [f"{host}: {line}" for host in hosts for line in search.causes.get(host, ())]
    return faults.found(
        BROKEN.get(broken, f"{part.kind}-slow"),
        hosts,
        f"{labels.name(part, search.fleet)}: {labels.loss(loss, broken)}",
        now,
        _device(part, search),
        sure=MEASURED,
        chance=chance,
        observed=round(-loss, 4),
        evidence=(evidence, *causes),
        next=labels.next_step(part, hosts),
    )


def _hosts(part: Part, search: SlowSearch) -> tuple[str, ...]:
    """Return the hosts of a part; the ends of a path in the same order in every search."""
    return tuple(nodeset.unfold(nodeset.fold(search.hosts(part))))


def _device(part: Part, search: SlowSearch) -> Device | None:
    if part.kind == NODE:
        return None
    name = f"path {' - '.join(_hosts(part, search))}" if part.kind == PATH else labels.name(part, search.fleet)
    if part.kind == GPU:
        return Device(f"GPU{part.rail}", kind="gpu")
    return Device(
        name.partition(" ")[2] if len(part.at) == 1 and part.rail is not None else name, kind=KINDS.get(part.kind, "")
    )


def _stragglers(search: SlowSearch, now: int) -> Iterator[Conclusion]:
    for straggler in search.stragglers:
        subject, of_gpu = text.plain(straggler.subject), straggler.subject.startswith("GPU")
        yield faults.found(
            "gpu-slow" if of_gpu else "node-slow",
            (straggler.host,),
            f"{straggler.host} {subject}: {labels.loss(straggler.loss)} {labels.straggler_evidence(straggler)}",
            now,
            Device(subject, kind="gpu") if of_gpu else None,
            f"{straggler.metric} by itself",
            sure=MEASURED,
            chance=straggler.chance or None,
            observed=round(-straggler.loss, 4),
            evidence=(labels.straggler_evidence(straggler),),
            next=Next("audit", (), (straggler.host,)),
        )


def _doubts(search: SlowSearch, now: int) -> Iterator[Conclusion]:
    for doubt in search.result.doubts:
        first, *others = doubt.candidates
        names = tuple(labels.name(part, search.fleet) for part in others)
        named = _named(first, "", doubt.loss, search, now, labels.doubt(doubt, search), None)
        yield _suspected(named, doubt, names)


def _suspected(named: Conclusion, doubt: Doubt, others: tuple[str, ...]) -> Conclusion:
    more = ("--find-slow", "--more-rounds", str(doubt.more_rounds)) if doubt.more_rounds else ()
    return replace(
        named,
        severity="medium",
        statement=f"{named.statement}, or {text.names(list(others))}" if others else named.statement,
        sure=SUSPECTED,
        alternatives=others,
        next=Next("verify", more) if more else named.next,
    )


def _joint_run(search: SlowSearch, now: int) -> Iterator[Conclusion]:
    """Yield that all others as one are short of what is expected, and no part explains it."""
    if search.shortfall:
        observed, then = round(-search.shortfall, 4), Next("verify", ("--find-slow",))
        about = _about(search)
        yield faults.found(
            FLEET, (), labels.proof(search), now, about=about, sure=MEASURED, observed=observed, next=then
        )


def _about(search: SlowSearch) -> str:
    return nodeset.fold(search.fleet.nodes)


def _examinations(search: SlowSearch, now: int) -> Iterator[Examination]:
    """Yield what was proved: the hosts that reached as one what is expected have no slow part, nor path between them."""
    doubtful = {host for doubt in search.result.doubts for part in doubt.candidates for host in search.hosts(part)}
    joint_nodes = {search.fleet.nodes[node] for node in search.result.joint_nodes}
    good = joint_nodes - doubtful if search.shortfall is not None and not search.shortfall else set()
    every_fault = tuple(Judged(fault.id) for fault in faults.of_source(SOURCE) if fault.id != FLEET)
    why = "the hosts as one did not reach what is expected" if search.shortfall else "no run of the hosts as one"
    for host in search.fleet.nodes:
        judged = every_fault if host in good else ()
        unjudged = (
            {} if judged else {f"{NODE}-slow": "named or suspected" if host not in joint_nodes - doubtful else why}
        )
        yield Examination(SOURCE, host, now, __version__, judged, unjudged)
    yield Examination(SOURCE, "", now, __version__, _of_fleet(search, good))


def _of_fleet(search: SlowSearch, good: set[str]) -> tuple[Judged, ...]:
    """Return what is proved of the fleet: links between its good nodes, if there is no doubt about any, and that it is not slow as a whole."""
    if not good:
        return ()
    fleet = search.fleet
    doubtful = any(part.kind in (LINK, UPLINK) for doubt in search.result.doubts for part in doubt.candidates)
    domains = sorted({domain for node, domain in zip(fleet.nodes, fleet.domains, strict=True) if node in good})
    ends = list(combinations(domains, 2))
    parts = [Part(LINK, pair) for pair in ends] + [Part(UPLINK, (one,)) for one in domains if ends]
    links = frozenset(labels.name(part, fleet) for part in parts)
    faults_of_links = ("link-slow", "uplink-slow", *BROKEN.values()) if links and not doubtful else ()
    return (Judged(FLEET, _about(search)), *(Judged(fault, only=links) for fault in faults_of_links))
