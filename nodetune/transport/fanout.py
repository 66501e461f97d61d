"""Many hosts at once: each within its own time, none able to stop another, each handed over as it completes."""

from __future__ import annotations

import queue
import random
import re
import shlex
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nodetune import factfile, show
from nodetune.model import HostFacts
from nodetune.transport import Options, Target, Unreachable, local, ssh
from nodetune.transport.hostkeys import HostKeys
from nodetune.transport.lifeline import Lifeline
from nodetune.transport.settings import Resolver, Settings
from nodetune.transport.talk import Talk

GRACE_SECONDS = 2.0
"""After its deadline a host's connection is cut; a thread that does not notice within this time is left behind."""

ENDING_SECONDS = 2.0
RETRY_SECONDS = 1.0

Outcome = tuple[Target, HostFacts | Unreachable, float]
ScriptFor = Callable[[Target], tuple[bytes, str]]


def collect(
    targets: Sequence[Target],
    script_for: ScriptFor,
    options: Options,
    forks: int = 64,
    transport: str = "auto",
    asked: Mapping[str, list[str]] | None = None,
) -> Generator[Outcome, None, None]:
    """Probe `targets`, at most `forks` at a time, and yield (target, facts or why not, seconds) as each is done.

    `script_for` gives the script to run on a target and the nonce of its answer. With `asked` (fact families and
    names), a run for this machine alone probes without starting a process. Closing the generator ends all connections
    and processes at once.
    """
    ways = Ways(script_for, options, transport, asked if len(targets) == 1 else None)
    if len(targets) == 1 and ways.is_imported(targets[0]):
        yield ways.outcome(targets[0], Lifeline(options.seconds))
        return
    try:
        yield from Crew(targets, ways, options.seconds).work(max(1, forks))
    finally:
        ways.close()


@dataclass(eq=False)
class Worker:
    """A thread that works for one host."""

    target: Target
    life: Lifeline
    thread: threading.Thread | None = None


class Crew:
    """The workers of a run, as seen by the one who waits for them."""

    def __init__(self, targets: Sequence[Target], ways: Ways, seconds: float) -> None:
        self._waiting = deque(targets)
        self._ways = ways
        self._seconds = seconds
        self._busy: set[Worker] = set()
        self._done: queue.SimpleQueue[tuple[Worker, Outcome]] = queue.SimpleQueue()

    def work(self, forks: int) -> Generator[Outcome, None, None]:
        try:
            while self._waiting or self._busy:
                while self._waiting and len(self._busy) < forks:
                    self._start(self._waiting.popleft())
                try:
                    worker, outcome = self._done.get(timeout=0.25)
                except queue.Empty:
                    yield from self._overdue()
                    continue
                if worker in self._busy:  # not one that was given up
                    self._busy.discard(worker)
                    yield outcome
        finally:
            self._end()

    def _start(self, target: Target) -> None:
        worker = Worker(target, Lifeline(self._seconds))
        worker.thread = threading.Thread(target=self._run, args=(worker,), daemon=True, name=f"nodetune {target.name}")
        self._busy.add(worker)
        worker.thread.start()

    def _run(self, worker: Worker) -> None:
        self._done.put((worker, self._ways.outcome(worker.target, worker.life)))

    def _overdue(self) -> Generator[Outcome, None, None]:
        """Cut the connections of hosts whose time is over; give up those whose thread is stuck nevertheless."""
        for worker in list(self._busy):
            late = worker.life.spent() - worker.life.seconds
            if late >= 0:
                worker.life.cut()
            if late >= GRACE_SECONDS:
                self._busy.discard(worker)
                yield worker.target, worker.life.overdue(), worker.life.spent()

    def _end(self) -> None:
        for worker in self._busy:
            worker.life.cut()
        end = Lifeline(ENDING_SECONDS)
        for worker in self._busy:
            if worker.thread:
                worker.thread.join(max(0.0, end.end - end.start - end.spent()))


class Ways:
    """How hosts are reached in one run, and what they share."""

    def __init__(
        self, script_for: ScriptFor, options: Options, transport: str, asked: Mapping[str, list[str]] | None
    ) -> None:
        self._script_for = script_for
        self._options = options
        self._transport = transport
        self._asked = asked
        self._resolver = Resolver()
        self._host_keys = HostKeys(options.accept_new_host_keys)
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []

    def close(self) -> None:
        for close in self._closers:
            close()

    @cached_property
    def _paramiko(self) -> Any:
        """Imported by the first host that needs it."""
        from nodetune.transport import paramiko_ssh

        connections = paramiko_ssh.Connections(self._options, self._resolver, self._host_keys)
        self._closers.append(connections.close)
        return connections

    def is_local(self, target: Target) -> bool:
        return "local" in (target.connection, self._transport)

    def is_imported(self, target: Target) -> bool:
        """Whether the probe can run in this very process: only while no other host has a thread in it."""
        return self._asked is not None and self.is_local(target) and not local.becomes_another(target)

    def outcome(self, target: Target, life: Lifeline) -> Outcome:
        """The facts of a host, or why there are none. Raises nothing."""
        try:
            found: HostFacts | Unreachable = self._facts(target, life)
        except Unreachable as problem:
            found = _without_secrets(problem, target)
        except Exception as problem:  # noqa: BLE001  (one host's surprise must not cost the others)
            text = f"{type(problem).__name__}: {show.plain(problem, 200)}"
            found = _without_secrets(Unreachable("internal error", f"{text}: please report this"), target)
        return target, found, life.spent()

    def _facts(self, target: Target, life: Lifeline) -> HostFacts:
        if self.is_imported(target) and self._asked is not None:
            return _read(local.facts(self._asked, min(life.seconds, 20.0)), target, "local")
        data, way = self._twice(target, life)
        return _read(data, target, way)

    def _twice(self, target: Target, life: Lifeline) -> tuple[Any, str]:
        """One attempt, and another one if the connection dropped."""
        try:
            return self._data(target, life)
        except Unreachable as problem:
            if problem.state != "dropped" or life.spent() + RETRY_SECONDS > life.seconds:
                raise
            first = problem
        life.stage = "waiting to try again"
        try:
            life.pause(random.uniform(0.2, RETRY_SECONDS))  # noqa: S311  (so that hosts behind one gate do not come back together)
            return self._data(target, life)
        except Unreachable as problem:
            raise (first if problem.state == "deadline" else problem) from None

    def _data(self, target: Target, life: Lifeline) -> tuple[Any, str]:
        """One attempt. Returns the probe's document and the way by which it came."""
        script, nonce = self._script_for(target)
        most = self._options.most_bytes
        if self.is_local(target):
            talk = Talk(_here(target), script, nonce, most)
            return talk.answer(local.run(talk, life)), "local"
        _check(target)
        talk = Talk(target, script, nonce, most)
        settings = self._resolver.resolve(target, life.left(10.0))
        if self._transport == "ssh":
            return talk.answer(ssh.run(target, settings, talk, self._options, life)), "ssh"
        from nodetune.transport.jump import Beyond

        try:
            return talk.answer(self._by_paramiko(target, settings, talk, life)), "paramiko"
        except Beyond as beyond:
            reason = str(beyond)
        if self._transport == "paramiko":
            raise Unreachable("unsupported", f"{reason}, which paramiko cannot do: use --transport auto or ssh")
        talk = Talk(target, script, nonce, most)
        try:
            return talk.answer(ssh.run(target, settings, talk, self._options, life)), f"ssh: {reason}"
        except Unreachable as problem:
            raise Unreachable(problem.state, f"{problem.message} (by ssh: {reason})") from None

    def _by_paramiko(self, target: Target, settings: Settings, talk: Talk, life: Lifeline) -> int | None:
        """Raises Unreachable, or Beyond."""
        from nodetune.transport.jump import Beyond
        from nodetune.transport.paramiko_ssh import needs_openssh

        reason = needs_openssh(settings, self._host_keys, target)
        if reason:
            raise Beyond(reason)
        with self._lock:
            connections = self._paramiko
        status: int | None = connections.run(target, settings, talk, life)
        return status


def _here(target: Target) -> Target:
    """This machine's own Python, unless the inventory names another."""
    python = sys.executable if target.python == "python3" and sys.executable else target.python
    return replace(target, python=shlex.quote(python), become=local.becomes_another(target))


def _check(target: Target) -> None:
    """Raises Unreachable for what cannot be reached by SSH at all."""
    if target.connection.rpartition(".")[2] not in ("ssh", "paramiko", "paramiko_ssh", "smart"):
        raise Unreachable(
            "unsupported",
            f"ansible_connection {show.plain(target.connection)!r}: only ssh, paramiko and local are supported",
        )
    host = target.address or target.name
    if host.startswith("-") or not re.fullmatch(r"[\w.:%-]+", host):
        text = f"{show.plain(host, 100)!r} is no host name: give the host an address with ansible_host"
        raise Unreachable("unresolved", text)


def _read(data: Any, target: Target, way: str) -> HostFacts:
    try:
        found = factfile.from_data(data, target.name)
    except factfile.BadFacts as problem:
        raise Unreachable("bad answer", str(problem)) from None
    return HostFacts(found.host, found.facts, {**found.about, "transport": way})


def _without_secrets(problem: Unreachable, target: Target) -> Unreachable:
    """A host that was told a password might say it back."""
    message = problem.message
    for secret in (target.password, target.become_password):
        message = message.replace(secret, "(password)") if secret else message
    return Unreachable(problem.state, message)
