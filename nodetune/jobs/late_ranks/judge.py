"""From timed collectives to late ranks and their cause, over all jobs. Pure.

A late rank makes others late in its other communicators: the ranks of its tensor-parallel group all join the next all-reduce late.
A rank that itself waits for a late rank is therefore not named. Where ranks that are late in different communicators at the same
place may be parts of one model that wait for one another unseen (pipelines, small groups), none of them is.

One job cannot show whether it is a slow host or a program that gives this rank more to do. Several jobs can: what follows the
host to other ranks is the host's, what follows the rank to other hosts is the program's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nodetune.foundation import by_key, text
from nodetune.jobs.late_ranks import lateness, outliers
from nodetune.jobs.late_ranks.model import (
    HOST,
    OPEN,
    PROGRAM,
    Conclusion,
    Job,
    JudgedJob,
    Kind,
    Lateness,
    LatePart,
    Process,
    SlowRanks,
    is_most,
)
from nodetune.statistics.thresholds import ALWAYS_LAST, CLEARED_SHARE, FAR_LATER, MIN_LATENESS, UNDECIDED_SHARE

FEW = "too few ranks that do the same to know how much healthy ones differ: 7 at least"
OTHER_JOB = "another job, with these ranks on other hosts, would show it"


@dataclass(frozen=True)
class _Compared:
    job: Job
    rows: tuple[Lateness, ...]
    reasons: tuple[str, ...]

    def alike(self) -> Mapping[Kind, list[Lateness]]:
        return by_key((row.kind, row) for row in self.rows)


def judged(jobs: Iterable[Job], notes: Sequence[str] = ()) -> SlowRanks:
    """Judge all jobs together: the more are compared, the surer each must be."""
    compared = [_compare(job) for job in jobs]
    tests = sum(outliers.tests(rows) for each in compared for rows in each.alike().values())
    parts: list[LatePart] = []
    found: list[JudgedJob] = []
    for each in compared:
        late = _late(each, tests)
        together = _together(each, late)
        known = {process: row for process, row in late.items() if process not in together}
        parts += _parts(each, known)
        found.append(_judged_job(each, known, sorted(together), tests))
    return SlowRanks(tuple(found), tuple(_conclusions(parts, compared)), tuple(notes))


def _compare(job: Job) -> _Compared:
    rows, reasons = [], []
    for each in job.communicators:
        of_communicator, why = lateness.of_communicator(each)
        rows += of_communicator
        reasons += why
    return _Compared(job, tuple(rows), tuple(dict.fromkeys(reasons)))


def _late(each: _Compared, tests: int) -> dict[Process, Lateness]:
    """Return the late processes that wait for no other late one, with their worst lateness."""
    late = [row for rows in each.alike().values() for row in outliers.late(rows, tests)]
    of_communicator = by_key((row.communicator, row.process) for row in late)
    waits = {
        process: {other for other in late_here if other != process}
        for communicator in each.job.communicators
        if (late_here := of_communicator.get(communicator.id))
        for process in communicator.members.values()
        if process not in late_here
    }
    worst: dict[Process, Lateness] = {}
    for row in sorted(late, key=lambda row: row.share):
        worst[row.process] = row
    causes = {process: row for process, row in worst.items() if not waits.get(process)}
    return causes or worst


def _together(each: _Compared, late: Mapping[Process, Lateness]) -> set[Process]:
    """Return late processes that may wait for one another where nobody sees it: at one place of several communicators.

    The ranks of one model are at the same place of their data-parallel communicators. All of a host are its own affair.
    """
    judged = {row.communicator for row in each.rows}
    seen = [set(one.members.values()) for one in each.job.communicators if one.id in judged]
    found: set[Process] = set()
    for processes in by_key(((row.kind.ranks, row.rank), process) for process, row in late.items()).values():
        apart = [
            one
            for one in processes
            if not any(one in members and other in members for members in seen for other in processes if other != one)
        ]
        hosts = {process.host for process in apart}
        there = sum(process.host in hosts for process in each.job.positions)
        if len(apart) > 1 and not (len(hosts) == 1 and is_most(len(apart), there)):
            found |= set(apart)
    return found


def _parts(each: _Compared, late: Mapping[Process, Lateness]) -> list[LatePart]:
    positions, local = each.job.positions, _local(each.job)
    found = []
    for host, processes in by_key((process.host, process) for process in late).items():
        ordered = sorted(processes, key=lambda process: local[process])
        of = sum(process.host == host for process in local)

        def part(them: Sequence[Process], host: str = host, of: int = of) -> LatePart:
            return LatePart(
                each.job.name,
                host,
                tuple(_largest(each.job, process)[1] for process in them),
                _largest(each.job, them[0])[0],
                frozenset(positions[process] for process in them),
                tuple(local[process] for process in them),
                of,
                max((late[process] for process in them), key=lambda row: row.share),
            )

        whole = part(ordered)
        found += [whole] if whole.is_host else [part([process]) for process in ordered]
    return found


def _largest(job: Job, process: Process) -> tuple[int, int]:
    """Return the size of the largest communicator of a process, and its rank there."""
    places = [(each.size, rank) for each in job.communicators for rank, own in each.members.items() if own == process]
    return max(places, key=lambda place: place[0])


def _local(job: Job) -> dict[Process, int]:
    """Return the place of each process on its host, by rank as launchers do: mostly the number of the GPU."""
    ordered = sorted(job.positions.items(), key=lambda item: (item[1], item[0].pid))
    of_host = by_key((process.host, process) for process, _ in ordered)
    return {process: at for processes in of_host.values() for at, process in enumerate(processes)}


def _judged_job(
    each: _Compared, late: Mapping[Process, Lateness], together: Sequence[Process], tests: int
) -> JudgedJob:
    members = each.job.positions
    alike = [rows for rows in each.alike().values() if outliers.comparable(rows)]
    judged = {row.process for rows in alike for row in rows}
    few = (FEW,) if each.rows and not alike else ()
    reasons = tuple(_left_out(each, alike, judged)) if judged else (each.reasons or few)
    hosts = tuple(sorted({process.host for process in members}))
    if together:
        undecided: tuple[str, ...] = (_of_model(each.job, together),)
    else:
        undecided = () if late else _undecided(each, tests) or (_last(each) if few else ())
    return JudgedJob(each.job.name, hosts, len(members), len(judged), undecided, reasons)


def _left_out(each: _Compared, alike: Sequence[Sequence[Lateness]], judged: set[Process]) -> Iterator[str]:
    """Say what a judged job does not show: ranks, or hosts, that were compared with no other."""
    members, world = each.job.positions, max(one.size for one in each.job.communicators)
    ranks = max(world, len(members))
    if len(judged) < ranks:
        yield f"{len(judged)} of {text.count(ranks, 'rank')} could be compared"
    compared = {row.communicator for rows in alike for row in rows}
    across = [one for one in each.job.communicators if one.id in compared]
    if len({process.host for process in members}) > 1 and all(
        len({process.host for process in one.members.values()}) == 1 for one in across
    ):
        yield "its hosts were compared with themselves only"


def _of_model(job: Job, together: Sequence[Process]) -> str:
    ranks = text.names([str(_largest(job, process)[1]) for process in together])
    hosts = text.names(sorted({process.host for process in together}))
    return f"ranks {ranks} on {hosts} are late together: one of them, which the others may wait for"


def _undecided(each: _Compared, tests: int) -> tuple[str, ...]:
    """Say which ranks are later where that is more than a quarter of them, up to half: these are not outliers."""
    count = len(each.job.positions)
    found = []
    for kind, rows in each.alike().items():
        late = outliers.late(rows, tests, UNDECIDED_SHARE)
        if late:
            hosts = text.names(sorted({row.process.host for row in late}))
            ranks = len({row.process for row in late})
            others = text.names(sorted({row.process.host for row in rows} - {row.process.host for row in late}))
            wait = min(row.wait for row in late) / 1000
            between = f"{hosts} or the program" + (f"; on {others} they come early" if others else "")
            found.append(
                f"{ranks} of {count} ranks, on {hosts}, join {kind.collective} at least {wait:.3g} ms late: {between}"
            )
    return tuple(found[:1])


def _last(each: _Compared) -> tuple[str, ...]:
    """Say which rank of too few to judge is nearly always the last, by far more than the next one."""
    for kind, rows in each.alike().items():
        worst, *others = sorted(rows, key=lambda row: -row.share)
        if worst.last >= ALWAYS_LAST and worst.share >= max(MIN_LATENESS, *(FAR_LATER * row.share for row in others)):
            world, rank = _largest(each.job, worst.process)
            share, wait = f"{100 * worst.last:.0f} % of {worst.calls}", f"{worst.wait / 1000:.3g} ms"
            return (
                f"rank {rank} of {world}, on {worst.process.host}, joins {kind.collective} last in {share}, {wait} late",
            )
    return ()


def _conclusions(parts: Sequence[LatePart], compared: Sequence[_Compared]) -> list[Conclusion]:
    """Put together what is late in several jobs: by its place in the program, or by its host."""
    program = [part for part in parts if _follows_rank(part, parts) and not _follows_host(part, parts)]
    found = [
        Conclusion(
            PROGRAM, f"it follows the rank to {text.count(len({each.host for each in group}), 'host')}", tuple(group)
        )
        for group in by_key((min(each.positions), each) for each in program).values()
    ]
    rest = by_key((each.unit, each) for each in parts if each not in program)
    found += [_of_unit(group, compared) for group in rest.values()]
    return sorted(found, key=lambda each: (each.cause == PROGRAM, -max(part.seen.share for part in each.parts)))


def _follows_rank(part: LatePart, parts: Iterable[LatePart]) -> bool:
    """Whether the same place in the program was late in another job on another host."""
    return any(each.job != part.job and each.host != part.host and each.positions & part.positions for each in parts)


def _follows_host(part: LatePart, parts: Iterable[LatePart]) -> bool:
    """Whether the same host, or process of it, was late in another job in another place of the program."""
    return any(
        each.job != part.job and each.unit == part.unit and not each.positions & part.positions for each in parts
    )


def _of_unit(parts: Sequence[LatePart], compared: Sequence[_Compared]) -> Conclusion:
    host, jobs = parts[0].host, {each.job for each in parts}
    seen = [each.job.name for each in compared if any(row.process.host == host for row in each.rows)]
    in_jobs = f"in {len(jobs)} of {text.count(len(seen), 'job')} there"
    cleared = _cleared(parts, compared)
    if any(_follows_host(part, parts) for part in parts):
        return Conclusion(HOST, f"{in_jobs}, with different ranks: it follows the host", tuple(parts))
    if len(jobs) > 1 and cleared:
        why = f"{in_jobs}; the same ranks were not late on {text.names(cleared)}"
        return Conclusion(HOST, why, tuple(parts))
    if len(jobs) > 1:
        why = f"{in_jobs}, with the same ranks each time: the host or the program; {OTHER_JOB}"
    elif len(seen) > 1:
        why = f"{in_jobs}: the host at that time, or the program"
    else:
        why = f"the host, or a program that gives this rank more to do; {OTHER_JOB}"
    return Conclusion(OPEN, why, tuple(parts))


def _cleared(parts: Sequence[LatePart], compared: Sequence[_Compared]) -> list[str]:
    """Return other hosts where the same places in the program were at most half as late."""
    late = {each.job for each in parts}
    places = {place for each in parts for place in each.positions}
    bound = CLEARED_SHARE * min(each.seen.share for each in parts)
    found = set()
    for each in compared:
        if each.job.name not in late:
            positions = each.job.positions
            there = [row for row in each.rows if positions[row.process] in places]
            slow = {row.process for row in there if row.share > bound}
            found |= {row.process.host for row in there if row.process not in slow} - {parts[0].host}
    return sorted(found)
