"""Which ranks of a running job are missing, or behind in which collective: two answers of RAS, some seconds apart. Pure.

Counts are of collectives that were launched, not of those that ended, and those of ranks that run differ for moments.
A rank is behind only if no process of its communicator launched anything between both answers. The counts leave out CUDA graphs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodetune.foundation import by_key, text
from nodetune.jobs.late_ranks.model import RasRank
from nodetune.jobs.late_ranks.ras_response import LEFT, CommunicatorStatus, RasResponse

MISSING, BEHIND, AHEAD, FAILED = "missing", "behind", "ahead", "error"


@dataclass(frozen=True)
class RasFinding:
    """A rank, or several of a communicator, and what is wrong with them."""

    kind: str
    communicator: str
    size: int
    ranks: tuple[RasRank, ...]
    why: str


@dataclass(frozen=True)
class RasStatus:
    """The verdict of two answers. `problem`: why there is no answer. `text`: one that only people can read.

    `hosts`: those of all ranks.
    """

    address: str
    problem: str = ""
    version: str = ""
    communicators: int = 0
    findings: tuple[RasFinding, ...] = ()
    notes: tuple[str, ...] = ()
    text: str = ""
    hosts: tuple[str, ...] = ()


def compare(address: str, first: RasResponse, second: RasResponse, pause: float) -> RasStatus:
    """Compare both answers."""
    before = {communicator.id: communicator for communicator in first.communicators}
    moved = _moved(before, second)
    findings: list[RasFinding] = []
    moving = 0
    for communicator in second.communicators:
        findings += _lost(before.get(communicator.id), communicator) + _failed(communicator)
        uneven = _uneven(communicator)
        if uneven and communicator.id in before and not {(rank.host, rank.pid) for rank in communicator.ranks} & moved:
            findings += uneven
        elif uneven:
            moving += 1
    notes = tuple(_notes(second, moving, not moved and not findings, pause))
    hosts = sorted({rank.host for communicator in second.communicators for rank in communicator.ranks if rank.host})
    return RasStatus(address, "", second.version, len(second.communicators), tuple(findings), notes, hosts=tuple(hosts))


def _moved(before: Mapping[str, CommunicatorStatus], second: RasResponse) -> set[tuple[str, int]]:
    """Return the processes that launched something in any communicator between both answers."""
    counts = {
        (communicator.id, rank.rank): rank.counts for communicator in before.values() for rank in communicator.ranks
    }
    ranks = ((communicator.id, rank) for communicator in second.communicators for rank in communicator.ranks)
    return {(rank.host, rank.pid) for id_, rank in ranks if rank.counts != counts.get((id_, rank.rank), rank.counts)}


def _lost(before: CommunicatorStatus | None, now: CommunicatorStatus) -> list[RasFinding]:
    """Return the ranks without data. One that has left, or not joined, must have been so before: jobs start and end."""
    known = {rank.rank for rank in before.ranks if rank.lost} if before else set()
    lost = [rank for rank in now.ranks if rank.lost and (rank.lost != LEFT or rank.rank in known)]
    groups = by_key((rank.lost, rank) for rank in lost)
    return [RasFinding(MISSING, now.id, now.size, tuple(ranks), why) for why, ranks in groups.items()]


def _failed(communicator: CommunicatorStatus) -> list[RasFinding]:
    groups = by_key((", ".join(rank.errors), rank) for rank in communicator.ranks if rank.errors)
    return [RasFinding(FAILED, communicator.id, communicator.size, tuple(ranks), why) for why, ranks in groups.items()]


def _uneven(communicator: CommunicatorStatus) -> list[RasFinding]:
    """Return the ranks whose count differs from that of the furthest: as ahead, if most are behind these few."""
    findings = []
    for name, counted in by_key((name, rank) for rank in communicator.ranks for name in rank.counts).items():
        top = max(rank.counts[name] for rank in counted)
        behind = [rank for rank in counted if rank.counts[name] < top]
        ahead = [rank for rank in counted if rank.counts[name] == top]
        if behind and len(ahead) < len(behind):
            why = f"launched {name} {top}, which {text.count(len(behind), 'rank')} did not"
            findings.append(RasFinding(AHEAD, communicator.id, communicator.size, tuple(ahead), why))
            continue
        for count, ranks in sorted(by_key((rank.counts[name], rank) for rank in behind).items()):
            done = f"launched {name} up to {count}" if count else f"launched no {name}"
            findings.append(
                RasFinding(
                    BEHIND, communicator.id, communicator.size, tuple(ranks), f"{done}; the furthest is at {top}"
                )
            )
    return findings


def _notes(second: RasResponse, moving: int, is_still: bool, pause: float) -> Iterable[str]:
    if moving:
        yield f"counts differ in {text.count(moving, 'communicator')} of processes that went on: usual in a job that runs"
    if starting := sum(communicator.starting for communicator in second.communicators):
        yield f"{text.count(starting, 'rank')} of communicators not ready yet"
    if second.timeouts:
        yield f"{text.count(second.timeouts, 'timeout')} between the job's own processes while they were asked"
    if is_still and second.communicators:
        yield f"no rank launched anything within {pause:g} s: all compute, or all are in a collective that does not end"
