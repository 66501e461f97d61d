"""The reporter: what the check container finds, as a condition of the node in Kubernetes.

It runs without privileges, and it is the one that has a token. It never clears the condition because it ends: an update
of the guard would free a bad node.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nodetune.foundation import text as plain_text
from nodetune.guard.node import condition as conditions
from nodetune.guard.node import health, records
from nodetune.guard.node.condition import CheckResults, Condition, RecentChecks
from nodetune.guard.node.invocation import RUN, InconclusiveError
from nodetune.guard.node.node_status import TIME, ApiRefusedError, Server, begun

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job

TICK_SECONDS = 1.0
STALE_SECONDS = 300.0
"""A result older than this says nothing about now, and the looks before and after a gap like this are not in a row."""
JITTER_SECONDS = 10.0
"""A change is written after a random part of this: a fault of all nodes at once must not be a flood of requests."""
HEARTBEAT_SECONDS, SPREAD = 300.0, 0.1
RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 60.0
STATE_SECONDS = 10.0
"""How often it leaves its state for the probes of the kubelet."""
TOKENS = "/var/run/secrets/nodetune"


def run(asked: Arguments, job: Job) -> int:
    """Report until SIGTERM. Raise InconclusiveError."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(RUN))
    enforced = [each for each in asked.enforce.split(",") if each]
    reporter = NodeReporter(job.node, server(), RecentChecks(enforced))
    say(f"{job.node}: " + (f"enforced: {', '.join(enforced)}" if enforced else "observe: no check makes a problem"))
    path = os.path.join(asked.result, health.RESULT)
    seen, left = ContainerResults(path), 0.0
    while True:
        now = time.monotonic()
        reporter.step(seen.new(), now)
        if asked.state and now >= left + STATE_SECONDS:
            left = now
            records.write(os.path.join(asked.state, health.RESULT), json.dumps(reporter.state()) + "\n")
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
        """The condition that the node has; None without one, and before the first answer."""
        self._memory: str | None = None
        """The hardware that the node had, as the message of its condition; None before the first answer."""
        self._known = False
        """Whether the two above are what the API server has."""
        self._since = 0.0
        """When the status that is written began: Unix seconds."""
        self._due = 0.0
        """When the next write is due, if there is something to write: seconds of the caller's clock."""
        self._looked: float | None = None
        self._wanted: Condition | None = None
        self._event: Condition | None = None
        """The change that has no Event yet."""
        self._unjudged = ""
        """Since when nothing could be judged; empty if something could."""
        self._problem, self._retry = "", RETRY_SECONDS

    def state(self) -> dict[str, str]:
        """Return whether it can report, and why not."""
        why = (
            self._problem
            or self._looks.not_judged()
            or ("" if self._looks.judged() else "the last look judged nothing")
        )
        return {"verdict": "inconclusive" if why else "pass", "reason": why}

    def step(self, look: CheckResults | None, now: float) -> None:
        """Take a new look, if there is one, and write what is due."""
        if self._looked is None:
            self._looked, self._due = now, now + self._chance(0, JITTER_SECONDS)
        if look is None and now - self._looked > STALE_SECONDS:
            self._looks.forget()
            for _ in range(conditions.LOOKS):
                self._take(CheckResults({}, why=f"the check has found nothing for {STALE_SECONDS:.0f} seconds"), now)
        if not self._known and now >= self._due:
            self._begin(now)
        if look is not None:
            if now - self._looked > STALE_SECONDS:
                self._looks.forget()
            self._take(look, now)
        if self._wanted is not None and self._known and now >= self._due:
            self._write(self._wanted, now)

    def _begin(self, now: float) -> None:
        """Ask what the node has."""
        try:
            found = self._server.touch(self._node)
        except ApiRefusedError as problem:
            self._refused(problem, now)
            return
        self._learn(found)
        standing = found.get(conditions.TYPE) or {}
        status, reason, message = (str(standing.get(key) or "") for key in ("status", "reason", "message"))
        self._known = True
        self._written = Condition(status, reason, message=message) if status in conditions.REASONS else None
        self._since = begun(standing)

    def _learn(self, found: Mapping[str, Any]) -> None:
        """Take the memory from an answer: an administrator may have removed it."""
        self._memory = str((found.get(conditions.HARDWARE) or {}).get("message") or "")

    def _take(self, look: CheckResults, now: float) -> None:
        look, memory = conditions.with_memory(look, self._memory)
        if memory:
            self._remember(memory)
        self._looks.add(look)
        self._looked = now
        found = self._looks.condition()
        if found or self._looks.judged():
            self._unjudged = ""
        else:
            found = self._not_judged()
        if found is not None and found != (self._wanted or self._written):
            self._due = max(now + self._chance(0, JITTER_SECONDS), self._due if self._problem else 0.0)
        self._wanted = found

    def _remember(self, memory: str) -> None:
        """Put the hardware that there is on record. Another look tries again."""
        try:
            self._learn(self._server.touch(self._node, memory))
        except ApiRefusedError as problem:
            self._tell(f"not written: {problem}")

    def _not_judged(self) -> Condition | None:
        """Return the condition that says since when nothing could be judged; its status stays. None before three such looks."""
        before = self._written
        known = conditions.UNJUDGED.fullmatch(before.message) if before else None
        self._unjudged = self._unjudged or (known[1] if known else time.strftime(TIME, time.gmtime()))
        why = self._looks.not_judged()
        if not why:
            return None
        said = (known[2] if known else before.message) if before else "nothing"
        message = plain_text.plain(f"not judged since {self._unjudged}: {why}", conditions.MAX_MESSAGE_LENGTH // 2)
        message += plain_text.plain(f"; before: {said}", conditions.MAX_MESSAGE_LENGTH // 2)
        return Condition(before.status if before else "", conditions.NOT_JUDGED, message=message)

    def _write(self, wanted: Condition, now: float) -> None:
        before = self._written
        since = self._since if before is not None and before.status == wanted.status else time.time()
        new = (
            before is None or (before != wanted and before.message != wanted.message) or before.reason != wanted.reason
        )
        self._event = wanted if new or self._event == wanted else None
        try:
            if wanted.status:  # a node without a status gets none while nothing can be judged
                self._learn(self._server.patch(self._node, wanted, since))
        except ApiRefusedError as problem:
            self._refused(problem, now)
            return
        if wanted != before or self._problem:
            say(f"{self._node}: {wanted.status or 'no status'} {wanted.reason}: {wanted.message}")
        self._written, self._since, self._problem, self._retry = wanted, since, "", RETRY_SECONDS
        self._due = now + HEARTBEAT_SECONDS * self._chance(1 - SPREAD, 1 + SPREAD)
        self._make_event()

    def _make_event(self) -> None:
        """Make the Event that is still to be made. The next heartbeat tries again."""
        if self._event is None:
            return
        try:
            self._server.tell(self._node, self._event)
            self._event = None
        except ApiRefusedError as problem:
            say(f"{self._node}: no Event: {problem}")

    def _refused(self, problem: ApiRefusedError, now: float) -> None:
        """Try again later, by what the node has then: it may have been done, and only the answer lost."""
        self._known = False
        asked = problem.wait + self._chance(0, JITTER_SECONDS) if problem.wait else 0.0
        self._due = now + max(asked, self._chance(0.5, 1) * self._retry)
        self._retry = min(2 * self._retry, MAX_RETRY_SECONDS)
        self._tell(f"not written: {problem}")

    def _tell(self, problem: str) -> None:
        """Say what is wrong, once."""
        if problem != self._problem:
            say(f"{self._node}: {problem}")
        self._problem = problem


def say(text: str) -> None:
    print(f"nodetune: {plain_text.plain(text, conditions.MAX_MESSAGE_LENGTH)}", flush=True)
