"""From late and missing ranks to what they conclude about hosts and jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import CERTAIN, MEASURED, SUSPECTED, Conclusion, Examination, Examined, Judged, Next
from nodetune.foundation import text
from nodetune.jobs.late_ranks import labels
from nodetune.jobs.late_ranks import model as late_model
from nodetune.jobs.late_ranks.model import HOST, PROGRAM, SlowRanks
from nodetune.jobs.late_ranks.ras_judge import AHEAD, BEHIND, FAILED, MISSING, RasFinding, RasStatus

RANKS, RAS = "late-ranks", "ras"
LATE, UNEVEN = "rank-late", "program-uneven"
OF_RAS = {MISSING: "rank-missing", BEHIND: "rank-behind", AHEAD: "rank-ahead", FAILED: "rank-error"}


def concluded(found: SlowRanks | RasStatus, now: int) -> Examined:
    """Return what a judgement of jobs concludes. `now`: Unix time of the judgement."""
    return _of_ras(found, now) if isinstance(found, RasStatus) else _of_ranks(found, now)


def _of_ranks(found: SlowRanks, now: int) -> Examined:
    every = tuple(one for each in found.conclusions for one in _late(each, now))
    hosts: dict[str, list[str]] = {}
    for job in found.jobs:
        for host in job.hosts:
            hosts.setdefault(text.plain(host), []).extend(
                (*job.undecided, *job.unjudged) if job.judged else ("too few ranks",)
            )
    looked = []
    for host, reasons in hosts.items():
        judged = () if reasons else (Judged(LATE), Judged(UNEVEN))
        unjudged = {LATE: text.plain(reasons[0], 200)} if reasons else {}
        looked.append(Examination(RANKS, host, now, __version__, judged, unjudged))
    return Examined(every, tuple(looked))


def _late(each: late_model.Conclusion, now: int) -> Iterator[Conclusion]:
    row = faults.row(UNEVEN if each.cause == PROGRAM else LATE)
    for part in each.parts:
        yield Conclusion(
            row.id,
            RANKS,
            (text.plain(part.host),),
            row.severity,
            f"{text.plain(labels.part(part))}: {text.plain(each.why, 400)}",
            now,
            about="" if part.is_host else f"local rank {part.local[0]}",
            sure=MEASURED if each.cause in (HOST, PROGRAM) else SUSPECTED,
            alternatives=() if each.cause in (HOST, PROGRAM) else ("the host", "the program"),
            observed=round(part.seen.share, 4),
            evidence=(text.plain(labels.evidence(part), 400),),
            who=row.who,
            next=Next("audit", (), (text.plain(part.host),)),
            job=text.plain(part.job),
        )


def _of_ras(found: RasStatus, now: int) -> Examined:
    every = tuple(one for each in found.findings for one in _missing(each, now))
    judged = tuple(Judged(fault) for fault in OF_RAS.values())
    looked = tuple(Examination(RAS, text.plain(host), now, __version__, judged) for host in found.hosts)
    return Examined(every, () if found.problem or found.text else looked)


def _missing(each: RasFinding, now: int) -> Iterator[Conclusion]:
    row = faults.row(OF_RAS[each.kind])
    for rank in each.ranks:
        yield Conclusion(
            row.id,
            RAS,
            (text.plain(rank.host),) if rank.host else (),
            row.severity,
            text.plain(f"{labels.ranks([rank])}: {each.why}", 400),
            now,
            about=f"rank {rank.rank}",
            sure=CERTAIN,
            observed=dict(rank.counts) or None,
            evidence=(text.plain(labels.finding(each), 400),),
            who=row.who,
            next=Next("audit", (), (text.plain(rank.host),)) if rank.host else Next(),
            job=text.plain(each.communicator),
        )
