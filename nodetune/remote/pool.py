"""Many hosts at once: each has its own deadline, none can block another, and each is yielded on completion."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.facts import document
from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote import local
from nodetune.remote.connect import Connector
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.session import Session

CUT_SECONDS = 0.5
"""Delay between a host's deadline and the cut of its connection: its thread can give a better reason first."""

GRACE_SECONDS = 2.0
"""A thread that is still busy this long after its deadline is abandoned."""

ENDING_SECONDS = 2.0

Outcome = tuple[Target, HostFacts | UnreachableError, float]
ScriptFor = Callable[[Target], tuple[bytes, str]]
Say = Callable[[Any], None]
Work = Callable[[Target, Deadline, Say], Any]


def collect(
    targets: Sequence[Target],
    script_for: ScriptFor,
    options: SessionOptions,
    forks: int = ConnectionOptions.forks,
    transport: str = "auto",
    asked: Mapping[str, list[str]] | None = None,
) -> Generator[Outcome, None, None]:
    """Probe `targets`, at most `forks` at a time, and yield (target, facts or error, seconds) as each completes.

    `script_for` returns the script for a target and the nonce of its answer. With `asked` (fact families and
    names), a run for this machine alone probes without starting a process. Closing the generator ends all connections
    and processes at once.
    """
    ways = Connector(lambda target: Session(target, *script_for(target), options.most_bytes), options, transport)

    def work(target: Target, deadline: Deadline, _say: Say) -> HostFacts | UnreachableError:
        return ways.outcome(target, lambda: _by(*ways.reach(target, deadline)))

    if asked is not None and len(targets) == 1 and ways.is_local(targets[0]) and not local.becomes_another(targets[0]):
        yield _imported(asked, targets[0], ways, Deadline(options.seconds))
        return
    try:
        for target, found, seconds in Pool([[target] for target in targets], work, options.seconds).work(forks):
            yield target, found, seconds or 0.0
    finally:
        ways.close()


def _imported(asked: Mapping[str, list[str]], target: Target, ways: Connector, deadline: Deadline) -> Outcome:
    """Probe in this process; allowed only while no other host has a thread in it."""

    def read() -> HostFacts:
        try:
            found = local.facts(asked, min(deadline.seconds, 20.0), deadline.seconds)
            return _by(document.from_data(found, target.name), "local")
        except document.FactsError as problem:
            raise UnreachableError("bad answer", str(problem)) from None

    return target, ways.outcome(target, read), deadline.spent()


def _by(found: HostFacts, way: str) -> HostFacts:
    """Add the transport to the facts."""
    return HostFacts(found.host, found.facts, {**found.about, "transport": way})


@dataclass(eq=False)
class Worker:
    """A thread that works for one host."""

    target: Target
    deadline: Deadline
    thread: threading.Thread | None = None


class Pool:
    """The workers of a run. `work` defines what each does for its host."""

    def __init__(self, groups: Sequence[Sequence[Target]], work: Work, seconds: float) -> None:
        self._waiting = deque(groups)
        self._work = work
        self._seconds = seconds
        self._busy: set[Worker] = set()
        self._said: queue.SimpleQueue[tuple[Worker, Any, float | None]] = queue.SimpleQueue()

    def work(self, forks: int) -> Generator[tuple[Target, Any, float | None], None, None]:
        """Yield (target, message, None) on arrival, and once for each target (target, result of `work`, seconds).

        At most `forks` hosts run at the same time, except that the hosts of a group start together.
        """
        try:
            while self._waiting or self._busy:
                while self._waiting and (not self._busy or len(self._busy) + len(self._waiting[0]) <= forks):
                    for target in self._waiting.popleft():
                        self._start(target)
                try:
                    worker, said, seconds = self._said.get(timeout=0.25)
                except queue.Empty:
                    worker = None
                if worker in self._busy:  # not one that was given up
                    if seconds is not None:
                        self._busy.discard(worker)
                    yield worker.target, said, seconds
                yield from self._overdue()
        finally:
            self._end()

    def _start(self, target: Target) -> None:
        worker = Worker(target, Deadline(self._seconds))
        worker.thread = threading.Thread(target=self._run, args=(worker,), daemon=True, name=f"nodetune {target.name}")
        self._busy.add(worker)
        worker.thread.start()

    def _run(self, worker: Worker) -> None:
        found = self._work(worker.target, worker.deadline, lambda event: self._said.put((worker, event, None)))
        self._said.put((worker, found, worker.deadline.spent()))

    def _overdue(self) -> Generator[tuple[Target, Any, float], None, None]:
        """Cut the connections of overdue hosts; abandon those whose thread is still stuck."""
        for worker in list(self._busy):
            late = worker.deadline.spent() - worker.deadline.seconds
            if late >= min(CUT_SECONDS, GRACE_SECONDS):
                worker.deadline.cut()
            if late >= GRACE_SECONDS:
                self._busy.discard(worker)
                yield worker.target, worker.deadline.overdue(), worker.deadline.spent()

    def _end(self) -> None:
        for worker in self._busy:
            worker.deadline.cut()
        end = Deadline(ENDING_SECONDS)
        for worker in self._busy:
            if worker.thread:
                worker.thread.join(max(0.0, end.end - end.start - end.spent()))
