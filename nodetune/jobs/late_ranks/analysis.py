"""From timed collectives to late ranks and their cause, over all jobs. Pure.

A late rank makes others late in its other communicators: the ranks of its tensor-parallel group all join the next all-reduce late.
A rank that itself waits for a late rank is therefore not named. Where ranks that are late in different communicators at the same
place may be parts of one model that wait for one another unseen (pipelines, small groups), none of them is.

One job cannot show whether it is a slow host or a program that gives this rank more to do. Several jobs can: what follows the
host to other ranks is the host's, what follows the rank to other hosts is the program's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nodetune.foundation import by_key, text
from nodetune.jobs.late_ranks import lateness, outliers
from nodetune.jobs.late_ranks.model import (
    HOST,
    OPEN,
    PROGRAM,
    ComparedJob,
    Job,
    Kind,
    LateCause,
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
class _Comparison:
    job: Job
    rows: tuple[Lateness, ...]
    reasons: tuple[str, ...]

    def alike(self) -> Mapping[Kind, list[Lateness]]:
        return by_key((row.kind, row) for row in self.rows)


def find_late_ranks(jobs: Iterable[Job], notes: Sequence[str] = ()) -> SlowRanks:
    """Judge all jobs together: the more are compared, the surer each must be."""
    comparisons = [_compare(job) for job in jobs]
    tests = sum(outliers.tests(rows) for comparison in comparisons for rows in comparison.alike().values())
    parts: list[LatePart] = []
    compared_jobs: list[ComparedJob] = []
    for comparison in comparisons:
        late = _late_processes(comparison, tests)
        together = _together(comparison, late)
        causing = {process: row for process, row in late.items() if process not in together}
        parts += _parts(comparison, causing)
        compared_jobs.append(_compared_job(comparison, causing, sorted(together), tests))
    judged = [comparison for comparison in comparisons if comparison.rows]
    return SlowRanks(tuple(compared_jobs), tuple(_causes(parts, judged)), tuple(notes))


def _compare(job: Job) -> _Comparison:
    rows, reasons = [], []
    for communicator in job.communicators:
        late_ranks, why = lateness.of_communicator(communicator)
        rows += late_ranks
        reasons += why
    return _Comparison(job, tuple(rows), tuple(dict.fromkeys(reasons)))


def _late_processes(comparison: _Comparison, tests: int) -> dict[Process, Lateness]:
    """Return the late processes that wait for no other late one, with their worst lateness."""
    late = [row for rows in comparison.alike().values() for row in outliers.late(rows, tests)]
    of_communicator = by_key((row.communicator, row.process) for row in late)
    waits = {
        process: {other for other in late_here if other != process}
        for communicator in comparison.job.communicators
        if (late_here := of_communicator.get(communicator.id))
        for process in communicator.members.values()
        if process not in late_here
    }
    worst: dict[Process, Lateness] = {}
    for row in sorted(late, key=lambda row: row.share):
        worst[row.process] = row
    causes = {process: row for process, row in worst.items() if not waits.get(process)}
    return causes or worst


def _together(comparison: _Comparison, late: Mapping[Process, Lateness]) -> set[Process]:
    """Return late processes that may wait for one another where nobody sees it: at one place of several communicators.

    The ranks of one model are at the same place of their data-parallel communicators. All of a host are its own affair.
    """
    compared = {row.communicator for row in comparison.rows}
    groups = [set(each.members.values()) for each in comparison.job.communicators if each.id in compared]
    together: set[Process] = set()
    for processes in by_key(((row.kind.ranks, row.rank), process) for process, row in late.items()).values():
        here = set(processes)
        joined = {process for members in groups if len(there := members & here) > 1 for process in there}
        separate = [process for process in processes if process not in joined]
        hosts = {process.host for process in separate}
        of_hosts = sum(process.host in hosts for process in comparison.job.positions)
        if len(separate) > 1 and not (len(hosts) == 1 and is_most(len(separate), of_hosts)):
            together |= set(separate)
    return together


def _parts(comparison: _Comparison, late: Mapping[Process, Lateness]) -> list[LatePart]:
    positions, local = comparison.job.positions, _local_ranks(comparison.job)
    parts = []
    for host, processes in by_key((process.host, process) for process in late).items():
        ordered = sorted(processes, key=lambda process: local[process])
        of = sum(process.host == host for process in local)

        def part(processes: Sequence[Process], host: str = host, of: int = of) -> LatePart:
            return LatePart(
                comparison.job.name,
                host,
                tuple(_largest(comparison.job, process)[1] for process in processes),
                _largest(comparison.job, processes[0])[0],
                frozenset(positions[process] for process in processes),
                tuple(local[process] for process in processes),
                of,
                max((late[process] for process in processes), key=lambda row: row.share),
            )

        host_part = part(ordered)
        parts += [host_part] if host_part.is_host else [part([process]) for process in ordered]
    return parts


def _largest(job: Job, process: Process) -> tuple[int, int]:
    """Return the size of the largest communicator of a process, and its rank there."""
    places = [
        (communicator.size, rank)
        for communicator in job.communicators
        for rank, own in communicator.members.items()
        if own == process
    ]
    return max(places, key=lambda place: place[0])


def _local_ranks(job: Job) -> dict[Process, int]:
    """Return the place of each process on its host, by rank as launchers do: mostly the number of the GPU."""
    ordered = sorted(job.positions.items(), key=lambda item: (item[1], item[0].pid))
    of_host = by_key((process.host, process) for process, _ in ordered)
    return {process: at for processes in of_host.values() for at, process in enumerate(processes)}


def _compared_job(
    comparison: _Comparison, late: Mapping[Process, Lateness], together: Sequence[Process], tests: int
) -> ComparedJob:
    members = comparison.job.positions
    alike = [rows for rows in comparison.alike().values() if outliers.comparable(rows)]
    compared = {row.process for rows in alike for row in rows}
    few = (FEW,) if comparison.rows and not alike else ()
    reasons = tuple(_gaps(comparison, alike, compared)) if compared else (comparison.reasons or few)
    counts = Counter(process.host for process in members)
    hosts = tuple(sorted(counts))
    if together:
        undecided: tuple[str, ...] = (_waiting_together(comparison.job, together),)
    else:
        undecided = () if late else _undecided(comparison, tests) or (_always_last(comparison) if few else ())
    of = tuple(counts[host] for host in hosts)
    return ComparedJob(comparison.job.name, hosts, len(members), len(compared), undecided, reasons, of)


def _gaps(comparison: _Comparison, alike: Sequence[Sequence[Lateness]], compared: set[Process]) -> Iterator[str]:
    """Say what a judged job does not show: ranks, or hosts, that were compared with no other."""
    members, world = comparison.job.positions, max(communicator.size for communicator in comparison.job.communicators)
    ranks = max(world, len(members))
    if len(compared) < ranks:
        yield f"{len(compared)} of {text.count(ranks, 'rank')} could be compared"
    ids = {row.communicator for rows in alike for row in rows}
    across = [communicator for communicator in comparison.job.communicators if communicator.id in ids]
    if len({process.host for process in members}) > 1 and all(
        len({process.host for process in communicator.members.values()}) == 1 for communicator in across
    ):
        yield "its hosts were compared with themselves only"


def _waiting_together(job: Job, together: Sequence[Process]) -> str:
    ranks = text.names([str(_largest(job, process)[1]) for process in together])
    hosts = text.names(sorted({process.host for process in together}))
    return f"ranks {ranks} on {hosts} are late together: one of them, which the others may wait for"


def _undecided(comparison: _Comparison, tests: int) -> tuple[str, ...]:
    """Say which ranks are later where that is more than a quarter of them, up to half: these are not outliers."""
    count = len(comparison.job.positions)
    descriptions = []
    for kind, rows in comparison.alike().items():
        late = outliers.late(rows, tests, UNDECIDED_SHARE)
        if late:
            hosts = text.names(sorted({row.process.host for row in late}))
            ranks = len({row.process for row in late})
            others = text.names(sorted({row.process.host for row in rows} - {row.process.host for row in late}))
            wait = min(row.wait for row in late) / 1000
            between = f"{hosts} or the program" + (f"; on {others} they come early" if others else "")
            descriptions.append(
                f"{ranks} of {count} ranks, on {hosts}, join {kind.collective} at least {wait:.3g} ms late: {between}"
            )
    return tuple(descriptions[:1])


def _always_last(comparison: _Comparison) -> tuple[str, ...]:
    """Say which rank of too few to judge is nearly always the last, by far more than the next one."""
    for kind, rows in comparison.alike().items():
        worst, *others = sorted(rows, key=lambda row: -row.share)
        if worst.last >= ALWAYS_LAST and worst.share >= max(MIN_LATENESS, *(FAR_LATER * row.share for row in others)):
            world, rank = _largest(comparison.job, worst.process)
            share, wait = f"{100 * worst.last:.0f} % of {worst.calls}", f"{worst.wait / 1000:.3g} ms"
            return (
                f"rank {rank} of {world}, on {worst.process.host}, joins {kind.collective} last in {share}, {wait} late",
            )
    return ()


def _causes(parts: Sequence[LatePart], compared: Sequence[_Comparison]) -> list[LateCause]:
    """Put together what is late in several jobs: by its place in the program, or by its host."""
    program = [part for part in parts if _follows_rank(part, parts) and not _follows_host(part, parts)]
    causes = [
        LateCause(
            PROGRAM, f"it follows the rank to {text.count(len({part.host for part in group}), 'host')}", tuple(group)
        )
        for group in by_key((min(part.positions), part) for part in program).values()
    ]
    rest = by_key((part.unit, part) for part in parts if part not in program)
    causes += [_of_unit(group, compared) for group in rest.values()]
    return sorted(causes, key=lambda cause: (cause.cause == PROGRAM, -max(part.lateness.share for part in cause.parts)))


def _follows_rank(part: LatePart, parts: Iterable[LatePart]) -> bool:
    """Whether the same place in the program was late in another job on another host."""
    return any(
        other.job != part.job and other.host != part.host and other.positions & part.positions for other in parts
    )


def _follows_host(part: LatePart, parts: Iterable[LatePart]) -> bool:
    """Whether the same host, or process of it, was late in another job in another place of the program."""
    return any(
        other.job != part.job and other.unit == part.unit and not other.positions & part.positions for other in parts
    )


def _of_unit(parts: Sequence[LatePart], compared: Sequence[_Comparison]) -> LateCause:
    host, jobs = parts[0].host, {part.job for part in parts}
    jobs_there = [
        comparison.job.name for comparison in compared if any(row.process.host == host for row in comparison.rows)
    ]
    in_jobs = f"in {len(jobs)} of {text.count(len(jobs_there), 'job')} there"
    cleared = _cleared(parts, compared)
    if any(_follows_host(part, parts) for part in parts):
        return LateCause(HOST, f"{in_jobs}, with different ranks: it follows the host", tuple(parts))
    if len(jobs) > 1 and cleared:
        why = f"{in_jobs}; the same ranks were not late on {text.names(cleared)}"
        return LateCause(HOST, why, tuple(parts))
    if len(jobs) > 1:
        why = f"{in_jobs}, with the same ranks each time: the host or the program; {OTHER_JOB}"
    elif len(jobs_there) > 1:
        why = f"{in_jobs}: the host at that time, or the program"
    else:
        why = f"the host, or a program that gives this rank more to do; {OTHER_JOB}"
    return LateCause(OPEN, why, tuple(parts))


def _cleared(parts: Sequence[LatePart], compared: Sequence[_Comparison]) -> list[str]:
    """Return other hosts where the same places in the program were at most half as late."""
    late = {part.job for part in parts}
    places = {place for part in parts for place in part.positions}
    bound = CLEARED_SHARE * min(part.lateness.share for part in parts)
    cleared = set()
    for comparison in compared:
        if comparison.job.name not in late:
            positions = comparison.job.positions
            there = [row for row in comparison.rows if positions[row.process] in places]
            slow = {row.process for row in there if row.share > bound}
            cleared |= {row.process.host for row in there if row.process not in slow} - {parts[0].host}
    return sorted(cleared)
