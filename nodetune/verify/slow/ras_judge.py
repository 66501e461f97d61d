"""Which ranks of a running job are missing, or behind in which collective: two answers of RAS, some seconds apart. Pure.

Counts are of collectives that were launched, not of those that ended, and those of ranks that run differ for moments.
A rank is behind only if no count of its communicator grew between both answers. The counts leave out CUDA graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodetune.foundation import by_key, text
from nodetune.verify.slow.model import RankOfJob
from nodetune.verify.slow.ras_answer import Answer, CommunicatorStatus

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
    """The verdict of two answers. `problem`: why there is no answer."""

    address: str
    problem: str = ""
    version: str = ""
    communicators: int = 0
    findings: tuple[RasFinding, ...] = ()
    notes: tuple[str, ...] = ()


def judged(address: str, first: Answer, second: Answer, pause: float) -> RasStatus:
    """Compare both answers."""
    before = {each.id: each for each in first.communicators}
    findings: list[RasFinding] = []
    moving = 0
    for each in second.communicators:
        findings += _lost(each) + _failed(each)
        uneven = _uneven(each)
        if uneven and _stands(before.get(each.id), each):
            findings += uneven
        elif uneven:
            moving += 1
    known = {(rank.host, rank.pid) for each in findings for rank in each.ranks}
    alone = [rank for rank in second.lost if (rank.host, rank.pid) not in known]
    findings += [
        RasFinding(MISSING, "", 0, tuple(ranks), why)
        for why, ranks in by_key((each.lost, each) for each in alone).items()
    ]
    return RasStatus(
        address,
        "",
        second.version,
        len(second.communicators),
        tuple(findings),
        tuple(_notes(first, second, moving, bool(findings), pause)),
    )


def _lost(each: CommunicatorStatus) -> list[RasFinding]:
    groups = by_key((rank.lost, rank) for rank in each.ranks if rank.lost)
    return [RasFinding(MISSING, each.id, each.size, tuple(ranks), why) for why, ranks in groups.items()]


def _failed(each: CommunicatorStatus) -> list[RasFinding]:
    groups = by_key((", ".join(rank.errors), rank) for rank in each.ranks if rank.errors)
    return [RasFinding(FAILED, each.id, each.size, tuple(ranks), why) for why, ranks in groups.items()]


def _uneven(each: CommunicatorStatus) -> list[RasFinding]:
    """Return the ranks whose count differs from that of the furthest: as ahead, if most are behind these few."""
    names = dict.fromkeys(name for rank in each.ranks for name in rank.counts)
    found = []
    for name in names:
        counted = [rank for rank in each.ranks if name in rank.counts]
        top = max(each.highest.get(name, 0), *(rank.counts[name] for rank in counted))
        behind = [rank for rank in counted if rank.counts[name] < top]
        ahead = [rank for rank in counted if rank.counts[name] == top]
        if not behind:
            continue
        if ahead and len(ahead) < len(behind) and each.size:
            why = f"launched {name} {top}, which {text.count(len(behind), 'rank')} did not"
            found.append(RasFinding(AHEAD, each.id, each.size, tuple(ahead), why))
            continue
        for count, ranks in sorted(by_key((rank.counts[name], rank) for rank in behind).items()):
            why = (
                f"launched {name} up to {count}; the others are at {top}"
                if count
                else f"launched no {name}; the others are at {top}"
            )
            found.append(RasFinding(BEHIND, each.id, each.size, tuple(ranks), why))
    return found


def _stands(before: CommunicatorStatus | None, now: CommunicatorStatus) -> bool:
    return before is not None and _counts(before) == _counts(now) and dict(before.highest) == dict(now.highest)


def _counts(each: CommunicatorStatus) -> Mapping[int, Mapping[str, int]]:
    return {rank.rank: rank.counts for rank in each.ranks}


def _notes(first: Answer, second: Answer, moving: int, is_found: bool, pause: float) -> Iterable[str]:
    if moving:
        yield f"counts differ in {text.count(moving, 'communicator')} that went on within {pause:g} s: usual in a job that runs"
    if second.timeouts:
        yield f"{text.count(second.timeouts, 'timeout')} between the job's own processes while they were asked"
    before = {each.id: each for each in first.communicators}
    if (
        second.is_json
        and not is_found
        and second.communicators
        and all(_stands(before.get(each.id), each) for each in second.communicators)
    ):
        yield f"no rank launched anything within {pause:g} s: all compute, or all are in a collective that does not end"
    if not second.is_json:
        yield "NCCL before 2.28.7: its text names only ranks that are less than half of their communicator"
