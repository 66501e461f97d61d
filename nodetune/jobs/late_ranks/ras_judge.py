"""Which ranks of a running job are missing, or behind in which collective: two answers of RAS, some seconds apart. Pure.

Counts are of collectives that were launched, not of those that ended, and those of ranks that run differ for moments.
A rank is behind only if no process of its communicator launched anything between both answers. The counts leave out CUDA graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodetune.foundation import by_key, text
from nodetune.jobs.late_ranks.model import RankOfJob
from nodetune.jobs.late_ranks.ras_answer import LEFT, Answer, CommunicatorStatus

MISSING, BEHIND, AHEAD, FAILED = "missing", "behind", "ahead", "error"


@dataclass(frozen=True)
class RasFinding:
    """A rank, or several of a communicator, and what is wrong with them."""

    kind: str
    communicator: str
    size: int
    ranks: tuple[RankOfJob, ...]
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


def judged(address: str, first: Answer, second: Answer, pause: float) -> RasStatus:
    """Compare both answers."""
    before = {each.id: each for each in first.communicators}
    moved = _moved(before, second)
    findings: list[RasFinding] = []
    moving = 0
    for each in second.communicators:
        findings += _lost(before.get(each.id), each) + _failed(each)
        uneven = _uneven(each)
        if uneven and each.id in before and not {(rank.host, rank.pid) for rank in each.ranks} & moved:
            findings += uneven
        elif uneven:
            moving += 1
    notes = tuple(_notes(second, moving, not moved and not findings, pause))
    hosts = sorted({rank.host for each in second.communicators for rank in each.ranks if rank.host})
    return RasStatus(address, "", second.version, len(second.communicators), tuple(findings), notes, hosts=tuple(hosts))


def _moved(before: Mapping[str, CommunicatorStatus], second: Answer) -> set[tuple[str, int]]:
    """Return the processes that launched something in any communicator between both answers."""
    counts = {(each.id, rank.rank): rank.counts for each in before.values() for rank in each.ranks}
    ranks = ((each.id, rank) for each in second.communicators for rank in each.ranks)
    return {(rank.host, rank.pid) for id_, rank in ranks if rank.counts != counts.get((id_, rank.rank), rank.counts)}


def _lost(before: CommunicatorStatus | None, now: CommunicatorStatus) -> list[RasFinding]:
    """Return the ranks without data. One that has left, or not joined, must have been so before: jobs start and end."""
    known = {rank.rank for rank in before.ranks if rank.lost} if before else set()
    lost = [rank for rank in now.ranks if rank.lost and (rank.lost != LEFT or rank.rank in known)]
    groups = by_key((rank.lost, rank) for rank in lost)
    return [RasFinding(MISSING, now.id, now.size, tuple(ranks), why) for why, ranks in groups.items()]


def _failed(each: CommunicatorStatus) -> list[RasFinding]:
    groups = by_key((", ".join(rank.errors), rank) for rank in each.ranks if rank.errors)
    return [RasFinding(FAILED, each.id, each.size, tuple(ranks), why) for why, ranks in groups.items()]


def _uneven(each: CommunicatorStatus) -> list[RasFinding]:
    """Return the ranks whose count differs from that of the furthest: as ahead, if most are behind these few."""
    found = []
    for name in dict.fromkeys(name for rank in each.ranks for name in rank.counts):
        counted = [rank for rank in each.ranks if name in rank.counts]
        top = max(rank.counts[name] for rank in counted)
        behind = [rank for rank in counted if rank.counts[name] < top]
        ahead = [rank for rank in counted if rank.counts[name] == top]
        if behind and len(ahead) < len(behind):
            why = f"launched {name} {top}, which {text.count(len(behind), 'rank')} did not"
            found.append(RasFinding(AHEAD, each.id, each.size, tuple(ahead), why))
            continue
        for count, ranks in sorted(by_key((rank.counts[name], rank) for rank in behind).items()):
            done = f"launched {name} up to {count}" if count else f"launched no {name}"
            found.append(RasFinding(BEHIND, each.id, each.size, tuple(ranks), f"{done}; the furthest is at {top}"))
    return found


def _notes(second: Answer, moving: int, is_still: bool, pause: float) -> Iterable[str]:
    if moving:
        yield f"counts differ in {text.count(moving, 'communicator')} of processes that went on: usual in a job that runs"
    if starting := sum(each.starting for each in second.communicators):
        yield f"{text.count(starting, 'rank')} of communicators not ready yet"
    if second.timeouts:
        yield f"{text.count(second.timeouts, 'timeout')} between the job's own processes while they were asked"
    if is_still and second.communicators:
        yield f"no rank launched anything within {pause:g} s: all compute, or all are in a collective that does not end"
