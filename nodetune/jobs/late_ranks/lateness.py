"""How late each rank joins the collectives of its communicators. Pure.

The rank that joins last has the shortest kernel, because its kernel waits for nobody. `share` is the median of how much
shorter a rank's kernel is than the middle one of the same collective, as a fraction of the time between two such collectives.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from nodetune.foundation import text
from nodetune.jobs.late_ranks.model import Calls, Communicator, Kind, Lateness
from nodetune.statistics.thresholds import LATENESS_BLOCKS, MIN_CALLS, MIN_RANKS

MAX_CALLS = 2000
MAX_KINDS = 12
"""Kinds of collectives of a communicator: those with most calls. The others are too rare to add anything."""

TIMES = "set NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500"


def of_communicator(communicator: Communicator) -> tuple[list[Lateness], list[str]]:
    """Return how late the ranks are, for each kind of collective, and why kinds were left out."""
    late_ranks: list[Lateness] = []
    reasons: list[str] = []
    ranked = sorted(communicator.calls.items(), key=lambda item: -sum(map(len, item[1].values())))
    for kind, calls in ranked[:MAX_KINDS]:
        numbers = _matched(calls, _least(communicator.size))
        spacing = _spacing(calls, numbers) if numbers else 0.0
        if reason := _why_not_comparable(communicator, calls, numbers, spacing):
            reasons.append(reason)
        else:
            late_ranks += _late_ranks(communicator, kind, calls, numbers, spacing)
    return late_ranks, reasons


def _least(size: int) -> int:
    """Return how many ranks must have a collective: three of four."""
    return max(MIN_RANKS, -(-3 * size // 4))


def _why_not_comparable(communicator: Communicator, calls: Calls, numbers: Sequence[int], spacing: float) -> str:
    """Return why the ranks cannot be compared; empty: they can."""
    size = communicator.size
    if len(set(communicator.members.values())) < len(communicator.members):
        return "processes that drive several GPUs: the Inspector does not name the GPU"
    if size < MIN_RANKS:
        return f"communicators of fewer than {MIN_RANKS} ranks: no rank is the usual one"
    if len(calls) < _least(size):
        return f"files of {len(calls)} of {text.count(size, 'rank')}: collect those of all hosts"
    if len(numbers) < MIN_CALLS:
        return f"fewer than {MIN_CALLS} collectives of one kind that the ranks have in common"
    return "" if spacing else f"no times between the collectives: {TIMES}"


def _matched(calls: Calls, least: int) -> list[int]:
    """Return the sequence numbers that enough ranks have, at most MAX_CALLS of them, from all of the run."""
    counts: dict[int, int] = {}
    for of_rank in calls.values():
        for number in of_rank:
            counts[number] = counts.get(number, 0) + 1
    numbers = sorted(number for number, count in counts.items() if count >= least)
    return numbers[:: -(-len(numbers) // MAX_CALLS)] if numbers else []


def _spacing(calls: Calls, numbers: Sequence[int]) -> float:
    """Return the median µs from one collective of this kind to the next; 0 if the files do not say when they were."""
    fullest = max(calls.values(), key=len)
    at = {number: place for place, number in enumerate(sorted(fullest))}
    ends = [(number, fullest[number][1]) for number in numbers if number in fullest and fullest[number][1]]
    if len({end for _, end in ends}) < LATENESS_BLOCKS:
        return 0.0
    parts = [part for part in _blocks(ends) if len(part) > 1]
    spacings = [(part[-1][1] - part[0][1]) / (at[part[-1][0]] - at[part[0][0]]) for part in parts]
    return max(0.0, median(spacings)) if spacings else 0.0


def _blocks(values: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
    return [
        values[len(values) * at // LATENESS_BLOCKS : len(values) * (at + 1) // LATENESS_BLOCKS]
        for at in range(LATENESS_BLOCKS)
    ]


def _late_ranks(
    communicator: Communicator, kind: Kind, calls: Calls, numbers: Sequence[int], spacing: float
) -> list[Lateness]:
    late: Mapping[int, list[list[float]]] = {rank: [[] for _ in range(LATENESS_BLOCKS)] for rank in calls}
    last = dict.fromkeys(calls, 0)
    for place, number in enumerate(numbers):
        times = {rank: of_rank[number][0] for rank, of_rank in calls.items() if number in of_rank}
        middle = median(times.values())
        shortest = min(times.values())
        first = [rank for rank, time in times.items() if time == shortest]
        for rank in first if len(first) == 1 else ():
            last[rank] += 1
        for rank, time in times.items():
            late[rank][place * LATENESS_BLOCKS // len(numbers)].append(middle - time)
    rows = []
    for rank, blocks in late.items():
        every = [value for block in blocks for value in block]
        if len(every) < MIN_CALLS // 2:
            continue
        wait = median(every)
        parts = tuple(median(block) / spacing for block in blocks if block)
        share = last[rank] / len(every)
        rows.append(
            Lateness(
                communicator.id, rank, communicator.members[rank], kind, len(every), share, wait, wait / spacing, parts
            )
        )
    return rows
