"""The reporter: what the check container finds, as a condition of the node in Kubernetes.

It runs without privileges, and it is the one that has a token. It never clears the condition because it ends: an update
of the guard would free a bad node.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from nodetune.foundation import text as plain_text
from nodetune.guard.node import condition as conditions
from nodetune.guard.node import health, records
from nodetune.guard.node.condition import CheckResults, Condition, RecentChecks
from nodetune.guard.node.invocation import RUN, InconclusiveError
from nodetune.guard.node.node_status import ApiRefusedError, Server

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job

TICK_SECONDS = 1.0
STALE_SECONDS = 300.0
"""A result older than this says nothing about now, and the looks before and after a gap like this are not in a row."""
JITTER_SECONDS = 10.0
"""A change is written after a random part of this: a fault of all nodes at once must not be a flood of requests."""
HEARTBEAT_SECONDS, SPREAD = 300.0, 0.1
RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 60.0
TOKENS = "/var/run/secrets/nodetune"


def run(asked: Arguments, job: Job) -> int:
    """Report until SIGTERM. Raise InconclusiveError."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(RUN))
    enforced = [each for each in asked.enforce.split(",") if each]
    reporter = NodeReporter(job.node, server(), RecentChecks(enforced))
    say(f"{job.node}: " + (f"enforced: {', '.join(enforced)}" if enforced else "observe: no check makes a problem"))
    path = os.path.join(asked.result, health.RESULT)
    seen = ContainerResults(path)
    while True:
        reporter.step(seen.new(), time.monotonic())
        time.sleep(TICK_SECONDS)


def server() -> Server:
    """Return the API server of this pod. Raise InconclusiveError."""
    try:
        return Server.of(os.environ, TOKENS)
    except (KeyError, ValueError) as problem:
        raise InconclusiveError(f"not in a pod of Kubernetes: {problem}") from None


class ContainerResults:
    """The results of the check container, each once."""

    def __init__(self, path: str) -> None:
        self._path, self._last = path, ""

    def new(self) -> CheckResults | None:
        """Return the newest result if it was not seen before."""
        try:
            seen = os.stat(self._path)
            stamp = f"{seen.st_ino}-{seen.st_mtime_ns}"
            if stamp == self._last:
                return None
            self._last = stamp
            return conditions.look(plain_text.json_object(records.read(self._path)))
        except OSError:
            return None


class NodeReporter:
    """Decides when to write what. `chance(low, high)` is a random number."""

    def __init__(
        self, node: str, server: Server, looks: RecentChecks, chance: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._node, self._server, self._looks, self._chance = node, server, looks, chance
        self._written: Condition | None = None
        self._since = 0.0
        """When the status that is written began: Unix seconds."""
        self._due = 0.0
        """When the next write is due, if there is something to write: seconds of the caller's clock."""
        self._looked: float | None = None
        self._wanted: Condition | None = None
        self._problem, self._retry = "", RETRY_SECONDS

    def step(self, look: CheckResults | None, now: float) -> None:
        """Take a new look, if there is one, and write what is due."""
        if self._looked is not None and now - self._looked > STALE_SECONDS:
            self._looks.forget()
            self._looked = self._wanted = None
        if look is not None:
            self._take(look, now)
        if self._wanted is not None and now >= self._due:
            self._write(self._wanted, now)

    def _take(self, look: CheckResults, now: float) -> None:
        self._looks.add(look)
        self._looked = now
        found = self._looks.condition()
        if found is not None and found != (self._wanted or self._written):
            self._due = max(now + self._chance(0, JITTER_SECONDS), self._due if self._problem else 0.0)
        self._wanted = found

    def _write(self, wanted: Condition, now: float) -> None:
        changed = self._written is None or self._written.status != wanted.status
        since = time.time() if changed else self._since
        try:
            self._server.patch(self._node, wanted, since)
        except ApiRefusedError as problem:
            asked = problem.wait + self._chance(0, JITTER_SECONDS) if problem.wait else 0.0
            self._due = now + max(asked, self._chance(0.5, 1) * self._retry)
            self._retry = min(2 * self._retry, MAX_RETRY_SECONDS)
            self._tell(f"not written: {problem}")
            return
        if wanted != self._written or self._problem:
            say(f"{self._node}: {wanted.status} {wanted.reason}: {wanted.message}")
        self._written, self._since, self._problem, self._retry = wanted, since, "", RETRY_SECONDS
        self._due = now + HEARTBEAT_SECONDS * self._chance(1 - SPREAD, 1 + SPREAD)

    def _tell(self, problem: str) -> None:
        """Say what is wrong, once."""
        if problem != self._problem:
            say(f"{self._node}: {problem}")
        self._problem = problem


def say(text: str) -> None:
    print(f"nodetune: {plain_text.plain(text, conditions.MAX_MESSAGE_LENGTH)}", flush=True)
