"""Many hosts at once: each has its own deadline, none can block another, and each is yielded on completion."""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.facts import document
from nodetune.foundation import text as plain_text
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

WAITING_BYTES = 64 << 20
"""Limit for what all hosts together have sent and what is not judged yet."""

ALWAYS_BYTES = 1 << 19
"""Bytes that each host may always send, ten times a real answer: the answers of others do not cut it off."""

M_ARENA_MAX = -8
"""A setting of glibc's malloc, from malloc.h."""

PROBE_SECONDS = 20.0
"""Seconds that a probe has at least, where the deadline of its host allows."""

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
    wait = Waiting(asked)
    ways = Connector(lambda target: wait.session(target, *script_for(target), options.most_bytes), options, transport)

    def work(target: Target, deadline: Deadline, _say: Say) -> Any:
        return ways.outcome(target, lambda: ways.reach(target, deadline))

    if asked is not None and len(targets) == 1 and ways.is_local(targets[0]) and not local.becomes_another(targets[0]):
        yield _imported(asked, targets[0], ways, Deadline(options.seconds))
        return
    _share_one_heap()
    try:
        for target, found, seconds in Pool([[target] for target in targets], work, options.seconds).work(forks):
            yield target, _read(ways, target, found), seconds or 0.0
            wait.over(target)
    finally:
        ways.close()


def _share_one_heap() -> None:
    """Let all threads take memory from one heap: glibc gives each its own, and keeps there what a large answer took."""
    import ctypes  # an audit of this machine alone starts without

    with contextlib.suppress(OSError, AttributeError):  # other systems have no such setting
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def probe_seconds(seconds: float) -> float:
    """Return the time for a probe within a host's deadline: half of it, the rest is for the login and the answer."""
    return min(max(PROBE_SECONDS, seconds / 2), seconds)


def _read(ways: Connector, target: Target, found: Any) -> HostFacts | UnreachableError:
    """Read the answer of a host here, in one thread: so the facts of only one host are in memory at a time."""
    if isinstance(found, UnreachableError):
        return found
    answer, way = found
    return ways.outcome(target, lambda: _by(answer(), way))


class Waiting:
    """The bytes that hosts sent and that wait until their host is judged: one limit for all hosts together."""

    def __init__(self, asked: Mapping[str, list[str]] | None) -> None:
        self.asked = None if asked is None else {f"{family}.{name}" for family in asked for name in asked[family]}
        self._bytes: dict[str, int] = {}

    def session(self, target: Target, script: bytes, nonce: str, most_bytes: int) -> Session:
        session = WaitingSession(target, script, nonce, most_bytes)
        session.asked, session.waiting = self.asked, self
        return session

    def add(self, name: str, size: int) -> None:
        """Note what a host has sent. Raise UnreachableError if too much waits, and not because of the others alone."""
        own = self._bytes[name] = self._bytes.get(name, 0) + size
        if own > ALWAYS_BYTES and sum(list(self._bytes.values())) > WAITING_BYTES:
            own_size, all_of_it = plain_text.size(own), plain_text.size(WAITING_BYTES)
            text = (
                f"cut off after {own_size}, as the answers of all hosts together took {all_of_it}: audit it alone (-l)"
            )
            raise UnreachableError("too much output", text)

    def over(self, target: Target) -> None:
        self._bytes.pop(target.name, None)


class WaitingSession(Session):
    """A session whose answer is read only when it is this host's turn to be judged."""

    waiting: Waiting
    unpacking = threading.Lock()
    """Held while an answer is unpacked to see that it is whole: it may be 16 MiB, and 64 may arrive together."""

    def output(self, data: bytes) -> None:
        self.waiting.add(self._host, len(data))
        with self.unpacking:
            super().output(data)

    def answer(self, status: int | None) -> Any:
        """Return what reads the facts. Raise UnreachableError."""
        if self._answer is None:
            raise self._failure(status)
        return partial(super().answer, status)


def _imported(asked: Mapping[str, list[str]], target: Target, ways: Connector, deadline: Deadline) -> Outcome:
    """Probe in this process; allowed only while no other host has a thread in it."""

    def read() -> HostFacts:
        try:
            found = local.facts(asked, probe_seconds(deadline.seconds), deadline.seconds)
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
