"""Reach a host: select the transport, try again after a dropped connection, and report every error."""

import importlib.util
import random
import re
import shlex
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from nodetune.foundation import UserError, paths
from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote import local
from nodetune.remote.login import openssh
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.host_keys import HostKeys
from nodetune.remote.login.session import Session
from nodetune.remote.login.ssh_config import Resolver, Settings

RETRY_SECONDS = 1.0

Found = TypeVar("Found")


class Connector:
    """Reaches the hosts of one run and holds what they share.

    `talk_for` makes a new session with a target for each attempt; `again` says whether a second is allowed.
    """

    def __init__(
        self,
        talk_for: Callable[[Target], Session],
        options: SessionOptions,
        transport: str,
        again: Callable[[Target], bool] = lambda _target: True,
    ) -> None:
        self._talk_for = talk_for
        self._again = again
        self._options = options
        self._transport = _available(transport)
        self._resolver = Resolver()
        self._host_keys = HostKeys(options.accept_new_host_keys)
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []

    def close(self) -> None:
        for close in self._closers:
            close()

    @cached_property
    def _paramiko(self) -> Any:
        """The first host that needs paramiko imports it."""
        from nodetune.remote.paramiko import connections as paramiko_connections

        connections = paramiko_connections.Connections(self._options, self._resolver, self._host_keys)
        self._closers.append(connections.close)
        return connections

    def is_local(self, target: Target) -> bool:
        return "local" in (target.connection, self._transport)

    def outcome(self, target: Target, step: Callable[[], Found]) -> Found | UnreachableError:
        """Return the result of the step, or the reason why it failed. Raise nothing."""
        try:
            target.check()
            return step()
        except UnreachableError as problem:
            return _without_secrets(problem, target)
        except Exception as problem:  # noqa: BLE001  (one host's surprise must not cost the others)
            text = f"{type(problem).__name__}: {plain_text.plain(problem, 200)}"
            return _without_secrets(UnreachableError("internal error", f"{text}: please report this"), target)

    def reach(self, target: Target, deadline: Deadline) -> tuple[Any, str]:
        """Run the session with the host. Return its answer and the transport. Raise UnreachableError.

        If the connection drops, try again once.
        """
        try:
            return self._data(target, deadline)
        except UnreachableError as problem:
            late = deadline.spent() + RETRY_SECONDS > deadline.seconds
            if problem.state != "dropped" or late or not self._again(target):
                raise
            first = problem
        deadline.stage = "waiting to try again"
        try:
            deadline.pause(random.uniform(0.2, RETRY_SECONDS))  # noqa: S311  (so that hosts behind one gate do not come back together)
            return self._data(target, deadline)
        except UnreachableError as problem:
            raise (first if problem.state == "deadline" else problem) from None

    def _data(self, target: Target, deadline: Deadline) -> tuple[Any, str]:
        """Make one attempt."""
        if self.is_local(target):
            talk = self._talk_for(_here(target))
            return talk.answer(local.run(talk, deadline)), "local"
        if self._transport == "kubernetes":
            from nodetune.remote.kubernetes import exec_channel  # only this transport needs it

            talk = self._talk_for(target)
            return talk.answer(exec_channel.run(target, talk, self._options.cluster, deadline)), "kubernetes"
        ssh_only(target)
        talk = self._talk_for(target)
        settings = self._resolver.resolve(target, deadline.left(10.0))
        if self._transport == "openssh":
            return talk.answer(openssh.run(target, settings, talk, self._options, deadline)), "openssh"
        from nodetune.remote.paramiko.jump import JumpHostError

        try:
            return talk.answer(self._by_paramiko(target, settings, talk, deadline)), "paramiko"
        except JumpHostError as beyond:
            reason = str(beyond)
        if self._transport == "paramiko":
            raise UnreachableError(
                "unsupported", f"{reason}, which paramiko cannot do: use --transport auto or openssh"
            )
        talk = self._talk_for(target)
        try:
            return talk.answer(openssh.run(target, settings, talk, self._options, deadline)), f"openssh: {reason}"
        except UnreachableError as problem:
            raise UnreachableError(problem.state, f"{problem.message} (with OpenSSH: {reason})") from None

    def _by_paramiko(self, target: Target, settings: Settings, session: Session, deadline: Deadline) -> int | None:
        """Connect by paramiko. Raise UnreachableError, or JumpHostError if only OpenSSH can."""
        from nodetune.remote.paramiko.connections import needs_openssh
        from nodetune.remote.paramiko.jump import JumpHostError

        reason = needs_openssh(settings, self._host_keys, target)
        if reason:
            raise JumpHostError(reason)
        with self._lock:
            connections = self._paramiko
        status: int | None = connections.run(target, settings, session, deadline)
        return status


def _available(transport: str) -> str:
    """Return the transport, OpenSSH instead of auto where paramiko is not installed. Raise UserError."""
    if transport not in ("auto", "paramiko") or importlib.util.find_spec("paramiko"):
        return transport
    if transport == "paramiko":
        raise UserError(f"paramiko {paths.LACKING}: use --transport openssh")
    return "openssh"


def _here(target: Target) -> Target:
    """Return this machine as a target with the current Python, unless the inventory names another."""
    python = sys.executable if target.python == "python3" and sys.executable else target.python
    return replace(target, python=shlex.quote(python), become=local.becomes_another(target))


def ssh_only(target: Target) -> None:
    """Raise UnreachableError for a target that SSH cannot reach at all."""
    if target.connection.rpartition(".")[2] not in ("ssh", "paramiko", "paramiko_ssh", "smart"):
        raise UnreachableError(
            "unsupported",
            f"ansible_connection {plain_text.plain(target.connection)!r}: only ssh, paramiko and local are supported",
        )
    host = target.address or target.name
    if host.startswith("-") or not re.fullmatch(r"[\w.:%-]+", host):
        text = f"{plain_text.plain(host, 100)!r} is not a valid host name: give the host an address with ansible_host"
        raise UnreachableError("unresolved", text)


def _without_secrets(problem: UnreachableError, target: Target) -> UnreachableError:
    """Remove passwords from a message: a host may repeat one."""
    message = problem.message
    for secret in (target.password, target.become_password):
        message = message.replace(secret, "(password)") if secret else message
    return UnreachableError(problem.state, message)
