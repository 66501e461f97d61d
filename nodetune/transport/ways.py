"""How a host is reached: which transport, a second attempt where the first one dropped, and all that goes wrong in words."""

from __future__ import annotations

import random
import re
import shlex
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from nodetune import show
from nodetune.transport import Options, Target, Unreachable, local, ssh
from nodetune.transport.hostkeys import HostKeys
from nodetune.transport.lifeline import Lifeline
from nodetune.transport.settings import Resolver, Settings
from nodetune.transport.talk import Talk

RETRY_SECONDS = 1.0

Found = TypeVar("Found")


class Ways:
    """How hosts are reached in one run, and what they share.

    `talk_for` makes the talk to hold with a target, anew for each attempt; `again` says whether there may be a second.
    """

    def __init__(
        self,
        talk_for: Callable[[Target], Talk],
        options: Options,
        transport: str,
        again: Callable[[Target], bool] = lambda _target: True,
    ) -> None:
        self._talk_for = talk_for
        self._again = again
        self._options = options
        self._transport = transport
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

    def outcome(self, target: Target, step: Callable[[], Found]) -> Found | Unreachable:
        """What the step returns, or why it did not come to that. Raises nothing."""
        try:
            return step()
        except Unreachable as problem:
            return _without_secrets(problem, target)
        except Exception as problem:  # noqa: BLE001  (one host's surprise must not cost the others)
            text = f"{type(problem).__name__}: {show.plain(problem, 200)}"
            return _without_secrets(Unreachable("internal error", f"{text}: please report this"), target)

    def reach(self, target: Target, life: Lifeline) -> tuple[Any, str]:
        """Hold the talk with the host: its answer, and the way by which it came. Raises Unreachable.

        If the connection dropped, there is another attempt.
        """
        try:
            return self._data(target, life)
        except Unreachable as problem:
            if problem.state != "dropped" or not self._again(target) or life.spent() + RETRY_SECONDS > life.seconds:
                raise
            first = problem
        life.stage = "waiting to try again"
        try:
            life.pause(random.uniform(0.2, RETRY_SECONDS))  # noqa: S311  (so that hosts behind one gate do not come back together)
            return self._data(target, life)
        except Unreachable as problem:
            raise (first if problem.state == "deadline" else problem) from None

    def _data(self, target: Target, life: Lifeline) -> tuple[Any, str]:
        """One attempt."""
        if self.is_local(target):
            talk = self._talk_for(_here(target))
            return talk.answer(local.run(talk, life)), "local"
        _check(target)
        talk = self._talk_for(target)
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
        talk = self._talk_for(target)
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


def _without_secrets(problem: Unreachable, target: Target) -> Unreachable:
    """A host that was told a password might say it back."""
    message = problem.message
    for secret in (target.password, target.become_password):
        message = message.replace(secret, "(password)") if secret else message
    return Unreachable(problem.state, message)
