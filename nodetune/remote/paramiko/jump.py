"""Jump hosts: one connection for each, shared by all hosts behind it."""

import threading
from collections.abc import Callable

import paramiko

from nodetune.foundation import text as plain_text
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.ssh_config import config_files


class JumpHostError(Exception):
    """The host needs a feature that paramiko lacks. The text names it, and the OpenSSH client takes over."""


class Jump:
    """The connection to one jump host. If it fails, all hosts behind it fail without another attempt."""

    def __init__(self, name: str) -> None:
        self._about = f"jump host {name}: "
        self._lock = threading.Lock()
        self._transport: paramiko.Transport | None = None
        self._failure: Exception | None = None

    def transport(self, connect: Callable[[], paramiko.Transport], deadline: Deadline) -> paramiko.Transport:
        """Return the open connection; the first caller opens it. Raise UnreachableError or JumpHostError."""
        if not self._lock.acquire(timeout=deadline.left()):
            raise deadline.overdue()
        try:
            if self._failure:
                raise self._failure
            if self._transport is None or not self._transport.is_active():
                self._transport = self._opened(connect)
            return self._transport
        finally:
            self._lock.release()

    def _opened(self, connect: Callable[[], paramiko.Transport]) -> paramiko.Transport:
        try:
            return connect()
        except JumpHostError as problem:
            self._failure = problem
            raise
        except UnreachableError as problem:
            known = problem.message.startswith("jump host ")
            self._failure = UnreachableError(problem.state, problem.message if known else self._about + problem.message)
            raise self._failure from None


def as_target(spec: str, behind: Target) -> Target:
    """Return a jump host as a target. As with OpenSSH, it uses the configuration file but no other argument."""
    login, _, place = spec.strip().removeprefix("ssh://").rpartition("@")
    host, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    name = (host if colon else place).strip("[]")
    files = config_files(behind.ssh_args)
    given = () if files == config_files(()) else ("-F", files[0] if files else "none")
    return Target(name, port=plain_text.whole(port), user=login or None, ssh_args=given)
