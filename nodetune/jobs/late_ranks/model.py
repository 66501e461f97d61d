"""The timed collectives of jobs, and the late ranks with their causes: frozen values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

HOST, PROGRAM, OPEN = "host", "program", "open"
"""Causes of a late part: it follows the host, it follows the rank number, or neither is known."""

Position = tuple[tuple[int, int], ...]
"""(size of the communicator, rank in it), for all communicators of a process. The Inspector does not write the rank of the job."""

FIRST: Position = ((0, 0),)
"""Rank 0 of every communicator: in jobs of any shape it is the one that writes logs and checkpoints."""

Calls = Mapping[int, Mapping[int, tuple[int, int]]]
"""Rank → sequence number → (µs in the kernel, µs since 1970 when that ended or was written; 0: unknown)."""


@dataclass(frozen=True, order=True)
class Process:
    """A process of a job: the Inspector names its host and its number, not its GPU."""

    host: str
    pid: int


@dataclass(frozen=True)
class Kind:
    """Collectives that are alike: compared with one another only."""

    collective: str
    size: int
    ranks: int


@dataclass(frozen=True)
class Communicator:
    """A communicator: its ranks whose files are there, and their calls of each kind."""

    id: str
    size: int
    members: Mapping[int, Process]
    calls: Mapping[Kind, Calls]


@dataclass(frozen=True)
class Job:
    """The processes that are linked by communicators."""

    name: str
    communicators: Sequence[Communicator]

    @property
    def positions(self) -> dict[Process, Position]:
        """Where each process is in its communicators, the largest first; FIRST if it is rank 0 of all of them."""
        places: dict[Process, set[tuple[int, int]]] = {}
        for communicator in self.communicators:
            for rank, process in communicator.members.items():
                places.setdefault(process, set()).add((communicator.size, rank))
        return {process: _position(of_process) for process, of_process in places.items()}


def _position(places: Iterable[tuple[int, int]]) -> Position:
    return tuple(sorted(places, key=lambda place: (-place[0], place[1]))) if any(rank for _, rank in places) else FIRST


@dataclass(frozen=True)
class Lateness:
    """The lateness of one rank in the collectives of one kind. `share` and `blocks`: fractions of the time between two."""

    communicator: str
    rank: int
    """In that communicator."""
    process: Process
    kind: Kind
    calls: int
    last: float
    """Fraction of the calls that it was the last to join."""
    wait: float
    """Median µs by which it joins later than the middle rank, which waits so long."""
    share: float
    blocks: tuple[float, ...]


def is_most(count: int, of: int) -> bool:
    """Return whether it is three of four or more."""
    return 4 * count >= 3 * of


@dataclass(frozen=True)
class LatePart:
    """A rank, or all ranks of a host, that makes the others of one job wait."""

    job: str
    host: str
    ranks: tuple[int, ...]
    """In their largest communicator, of `world` ranks."""
    world: int
    positions: frozenset[Position]
    local: tuple[int, ...]
    """Which of the job's processes on this host, in order of their ranks."""
    of: int
    """Processes of the job on this host."""
    lateness: Lateness

    @property
    def unit(self) -> tuple[str, tuple[int, ...]]:
        """The part without its job: the host, or one process of it."""
        return (self.host, () if self.is_host else self.local)

    @property
    def is_host(self) -> bool:
        """Whether it is (nearly) all ranks of its host."""
        return self.of > 1 and is_most(len(self.ranks), self.of)


@dataclass(frozen=True)
class LateCause:
    """A late part in the jobs that show it, and its cause."""

    cause: str
    why: str
    parts: tuple[LatePart, ...]


@dataclass(frozen=True)
class ComparedJob:
    """A job: how many ranks were compared, what is undecided, and why others were not compared. `of`: its ranks on each of `hosts`."""

    name: str
    hosts: tuple[str, ...]
    ranks: int
    compared: int
    undecided: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    of: tuple[int, ...] = ()


@dataclass(frozen=True)
class SlowRanks:
    """The result of all jobs."""

    jobs: tuple[ComparedJob, ...]
    causes: tuple[LateCause, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RasRank:
    """A rank as RAS shows it. `counts`: collectives launched, by name; `lost`: why it gave no data, or empty."""

    rank: int
    host: str
    gpu: str
    pid: int
    counts: Mapping[str, int] = field(default_factory=dict)
    lost: str = ""
    errors: tuple[str, ...] = ()
