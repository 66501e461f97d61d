"""Judge many hosts in several processes of this machine."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Protocol, TypeVar

from nodetune.api.model import HostResult
from nodetune.audit import fleet
from nodetune.foundation import parallel

T = TypeVar("T")
Probe = Callable[[list[T]], Generator[tuple[str, HostResult], None, None]]


class Judge(Protocol):
    """Turns the facts of each host into its result and collects the compared values (see auditor.py)."""

    def judged(self, probed: HostResult) -> tuple[HostResult, fleet.HostValues | None]: ...

    def take(self, result: HostResult, row: fleet.HostValues | None) -> None: ...


def judged(
    judge: Judge, things: Mapping[str, T], probe: Probe[T], count: int | None = None
) -> Generator[HostResult, None, None]:
    """Judge the results of `probe` for the things (by host name) in `count` processes (default: as many as pay off).

    A host whose process died counts as unreachable.
    """
    left, every = set(things), list(things.values())
    count = parallel.processes(len(every)) if count is None else count

    def work(part: Sequence[T]) -> Generator[tuple[str, HostResult, fleet.HostValues | None], None, None]:
        with closing(probe(list(part))) as probed:
            for name, each in probed:
                yield name, *judge.judged(each)

    with closing(parallel.spread(parallel.parts(every, count), work) if count > 1 else work(every)) as judged:
        for name, result, row in judged:
            left.discard(name)
            judge.take(result, row)
            yield result
    for name in sorted(left):
        yield HostResult(name, "internal error", "the process for this host died: run the command again")
