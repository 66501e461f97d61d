"""From late and missing ranks to what they conclude about hosts and jobs. Pure."""

from collections.abc import Iterator

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import CERTAIN, MEASURED, SUSPECTED, Conclusion, Examination, Examined, Judged, Next
from nodetune.api.device import Device
from nodetune.foundation import text
from nodetune.jobs.late_ranks import labels
from nodetune.jobs.late_ranks.model import HOST, PROGRAM, LateCause, SlowRanks
from nodetune.jobs.late_ranks.ras_status import AHEAD, BEHIND, FAILED, MISSING, RasFinding, RasStatus

RANKS, RAS = "late-ranks", "ras"
LATE, UNEVEN = "rank-late", "program-uneven"
OF_RAS = {MISSING: "rank-missing", BEHIND: "rank-behind", AHEAD: "rank-ahead", FAILED: "rank-error"}


def concluded(result: SlowRanks | RasStatus, now: int) -> Examined:
    """Return what a judgement of jobs concludes. `now`: Unix time of the judgement."""
    return _of_ras(result, now) if isinstance(result, RasStatus) else _of_ranks(result, now)


def _of_ranks(result: SlowRanks, now: int) -> Examined:
    conclusions = tuple(conclusion for cause in result.causes for conclusion in _late(cause, now))
    hosts: dict[str, list[str]] = {}
    ranks: dict[str, int] = {}
    for job in result.jobs:
        for host, count in zip(map(text.plain, job.hosts), job.of, strict=True):
            ranks[host] = max(count, ranks.get(host, 0))
            hosts.setdefault(host, []).extend(
                (*job.undecided, *job.not_compared) if job.compared else ("too few ranks",)
            )
    examinations = []
    for host, reasons in hosts.items():
        judged = () if reasons else tuple(_judged(ranks[host]))
        unjudged = {LATE: text.plain(reasons[0], 200)} if reasons else {}
        examinations.append(Examination(RANKS, host, now, __version__, judged, unjudged))
    return Examined(conclusions, tuple(examinations))


def _judged(ranks: int) -> Iterator[Judged]:
    """Yield what a job proves of a host: itself, and of its ranks those that the job has there."""
    there = frozenset(map(_rank, range(ranks)))
    for fault in (LATE, UNEVEN):
        yield Judged(fault, "")
        yield Judged(fault, only=there)


def _rank(local: int) -> str:
    return f"local rank {local}"


def _late(cause: LateCause, now: int) -> Iterator[Conclusion]:
    for part in cause.parts:
        yield faults.found(
            UNEVEN if cause.cause == PROGRAM else LATE,
            (text.plain(part.host),),
            f"{text.plain(labels.part(part))}: {text.plain(cause.why, 400)}",
            now,
            about="" if part.is_host else _rank(part.local[0]),
            sure=MEASURED if cause.cause in (HOST, PROGRAM) else SUSPECTED,
            alternatives=() if cause.cause in (HOST, PROGRAM) else ("the host", "the program"),
            observed=round(part.lateness.share, 4),
            evidence=(text.plain(labels.evidence(part), 400),),
            next=Next("audit", (), (text.plain(part.host),)),
            job=text.plain(part.job),
        )


def _of_ras(status: RasStatus, now: int) -> Examined:
    conclusions = tuple(conclusion for finding in status.findings for conclusion in _missing(finding, now))
    judged = tuple(Judged(fault) for fault in OF_RAS.values())
    hosts = ("", *map(text.plain, status.hosts)) if status.hosts else ()  # of some ranks RAS knows no host
    examinations = tuple(Examination(RAS, host, now, __version__, judged) for host in hosts)
    return Examined(conclusions, () if status.problem or status.text else examinations)


def _missing(finding: RasFinding, now: int) -> Iterator[Conclusion]:
    for rank in finding.ranks:
        yield faults.found(
            OF_RAS[finding.kind],
            (text.plain(rank.host),) if rank.host else (),
            text.plain(f"{labels.ranks([rank])}: {finding.why}", 400),
            now,
            Device(f"GPU{rank.gpu}", kind="gpu") if rank.gpu.isdecimal() else None,
            f"rank {rank.rank}",
            sure=CERTAIN,
            observed=dict(rank.counts) or None,
            evidence=(text.plain(labels.finding(finding), 400),),
            next=Next("audit", (), (text.plain(rank.host),)) if rank.host else Next(),
            job=text.plain(finding.communicator),
        )
