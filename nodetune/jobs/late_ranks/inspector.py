"""Read what NCCL's Inspector wrote (plugins/profiler/inspector, format v4.0 of NCCL 2.28 to 2.30.7).

One file a process, HOST-pidN.log, with a JSON object on each line: `header` (id of the communicator, rank, n_ranks),
`metadata` (hostname, pid, dump_timestamp_us) and `coll_perf` (coll, coll_sn, coll_msg_size_bytes, coll_exec_time_us,
coll_timing_source; with NCCL_INSPECTOR_DUMP_VERBOSE also event_trace_ts). Names and GPUs of jobs are not in it.

The execution time is that of the GPU's kernel, from its start to its end by the GPU's timer: the longest of its channels.
A kernel starts when its rank joins and ends when the collective is done, so the rank that joins last has the shortest.
This holds for collectives that end for all ranks together: not for a broadcast or a reduction, whose sender need not wait.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from nodetune.foundation import UserError, by_key, text
from nodetune.jobs.late_ranks.model import Communicator, Job, Kind, Process

TOGETHER = ("AllReduce", "AllGather", "ReduceScatter")
"""Collectives that end for all ranks together."""

BY_GPU = "kernel_gpu"
"""The timing source that counts. The CPU sees a kernel late and at intervals."""

MAX_FILES = 20_000
MAX_CALLS = 4_000_000
"""Of all files: about 1 GB of memory and 75 s. Each gives the same number from its begin, so that they match."""

MAX_LINE_BYTES = 1 << 16
"""Characters of a line: a verbose one with 64 channels has 14,000."""

HIGHEST = 1 << 53
EXPECTED = "give the folder of NCCL_INSPECTOR_DUMP_DIR (JSON, not Prometheus)"


class Call(NamedTuple):
    """One line."""

    communicator: str
    rank: int
    ranks: int
    process: Process
    collective: str
    size: int
    number: int
    microseconds: int
    end: int


@dataclass
class _CommunicatorCalls:
    size: int
    places: set[tuple[str, Process]] = field(default_factory=set)
    """The folder of each process's file, and the process."""
    members: dict[int, Process] = field(default_factory=dict)
    calls: dict[Kind, dict[int, dict[int, tuple[int, int]]]] = field(default_factory=dict)
    repeated: set[tuple[Kind, int]] = field(default_factory=set)


def read(path: Path) -> tuple[list[Job], list[str]]:
    """Return the jobs of a file or a folder, and notes about what was left out. Raise UserError, OSError."""
    notes: list[str] = []
    files = sorted(_files(path, notes)) if path.is_dir() else [path]
    if len(files) > MAX_FILES:
        raise UserError(f"{text.plain(path)}: {len(files)} files, at most {MAX_FILES}: give the folder of fewer jobs")
    most = max(200, MAX_CALLS // max(1, len(files)))
    communicators: dict[str, _CommunicatorCalls] = {}
    lines = cut = 0
    for file in files:
        number = 0
        try:
            for number, call in enumerate(_calls(file), 1):
                if number > most:
                    cut += 1
                    break
                _add(communicators, call, str(file.parent))
        except OSError as problem:
            notes.append(_unread(file, problem))
        lines += number
    if cut:
        notes.insert(0, f"of {text.count(cut, 'file')}, only the first {most} collectives are used")
    if not lines:
        if notes:
            raise UserError(f"{text.plain(path)}: no collective of NCCL's Inspector could be read: {notes[0]}")
        raise UserError(f"{text.plain(path)}: no collective of NCCL's Inspector in it: {EXPECTED}")
    repeated = sum(len(calls.repeated) for calls in communicators.values())
    if repeated:
        notes.insert(0, f"{repeated} collectives with the same number as another (CUDA graphs) cannot be matched")
    return _jobs(communicators), notes[:20]


def _files(path: Path, notes: list[str]) -> Iterator[Path]:
    """Yield the files of a folder, and note folders that cannot be read."""
    for folder, _, names in os.walk(
        path, onerror=lambda problem: notes.append(_unread(Path(problem.filename), problem))
    ):
        for name in names:
            file = Path(folder, name)
            if name.endswith(".log") and file.is_file():
                yield file


def _unread(path: Path, problem: OSError) -> str:
    return f"{text.plain(path)} was left out: {(problem.strerror or str(problem)).lower()}"


def _calls(path: Path) -> Iterator[Call]:
    with path.open("r", encoding="utf-8", errors="replace") as stream:
        while line := stream.readline(MAX_LINE_BYTES):
            if line.startswith("{") and (call := _call(line)):
                yield call


def _call(line: str) -> Call | None:
    """Return the call of a line, or None: p2p, other timing, or a line that was not finished."""
    try:
        read: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    header, about, call = (_object(read, name) for name in ("header", "metadata", "coll_perf"))
    if call.get("coll") not in TOGETHER or call.get("coll_timing_source", BY_GPU) != BY_GPU:
        return None
    names: list[str] = [value for value in (header.get("id"), about.get("hostname")) if _is_name(value)]
    data = [header.get("rank"), header.get("n_ranks"), about.get("pid")]
    data += [call.get("coll_msg_size_bytes"), call.get("coll_sn"), call.get("coll_exec_time_us")]
    figures: list[int] = [value for value in data if type(value) is int and 0 <= value < HIGHEST]
    if len(names) < 2 or len(figures) < len(data):
        return None
    rank, ranks, pid, size, number, microseconds = figures
    if rank >= ranks or not microseconds:
        return None
    process = Process(names[1], pid)
    return Call(names[0], rank, ranks, process, call["coll"], size, number, microseconds, _end(call, about))


def _is_name(data: object) -> TypeGuard[str]:
    return isinstance(data, str) and 0 < len(data) <= 256


def _object(data: Any, name: str) -> Mapping[str, Any]:
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _end(call: Mapping[str, Any], about: Mapping[str, Any]) -> int:
    """Return when the kernel ended by the host's clock (verbose), else when the line was made; 0 if neither is sound."""
    events = _object(call, "event_trace_ts").get("kernel_events")
    stops = [_object({"": event}, "").get("kernel_stop_ts") for event in events] if isinstance(events, list) else []
    times = [time for time in (*stops, None if stops else about.get("dump_timestamp_us")) if type(time) is int]
    return max((time for time in times if 0 < time < HIGHEST), default=0)


def _add(communicators: dict[str, _CommunicatorCalls], call: Call, folder: str) -> None:
    communicator = communicators.setdefault(call.communicator, _CommunicatorCalls(call.ranks))
    if communicator.size != call.ranks or communicator.members.setdefault(call.rank, call.process) != call.process:
        return  # a hash that two communicators share: the first counts
    communicator.places.add((folder, call.process))
    kind = Kind(call.collective, call.size, call.ranks)
    of_rank = communicator.calls.setdefault(kind, {}).setdefault(call.rank, {})
    if call.number in of_rank:
        communicator.repeated.add((kind, call.number))
    of_rank[call.number] = (call.microseconds, call.end)


def _jobs(communicators: Mapping[str, _CommunicatorCalls]) -> list[Job]:
    """Put communicators that share a process into one job."""
    above: dict[tuple[str, Process], tuple[str, Process]] = {}

    def top(place: tuple[str, Process]) -> tuple[str, Process]:
        while above[place] != place:
            above[place] = place = above[above[place]]
        return place

    for communicator in communicators.values():
        first = next(iter(communicator.places))
        for place in communicator.places:
            above.setdefault(place, place)
            above[top(place)] = top(first)
    groups = by_key((top(next(iter(each.places))), name) for name, each in communicators.items())
    jobs = []
    for names in groups.values():
        folders = {folder for name in names for folder, _ in communicators[name].places}
        jobs.append((os.path.commonpath(folders), [_communicator(name, communicators[name]) for name in names]))
    return [
        Job(name, communicators)
        for name, (_, communicators) in zip(_names([folder for folder, _ in jobs]), jobs, strict=True)
    ]


def _communicator(name: str, calls: _CommunicatorCalls) -> Communicator:
    for kind, number in calls.repeated:
        for of_rank in calls.calls[kind].values():
            of_rank.pop(number, None)
    return Communicator(name, calls.size, calls.members, calls.calls)


def _names(folders: Iterable[str]) -> list[str]:
    """Name jobs by their folder: `nccl-inspector-812` and `812` are job 812; several in one folder are numbered."""
    every = [Path(folder).name.removeprefix("nccl-inspector-") or "." for folder in folders]
    counts, counted = Counter(every), Counter[str]()
    names = []
    for name in every:
        counted[name] += 1
        names.append(name if counts[name] == 1 else f"{name}#{counted[name]}")
    return names
