"""The byte streams under an SSH connection: TCP or a ProxyCommand. Reads are limited."""

import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.login import openssh, pipes
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.ssh_config import Settings


class Socket:
    """A socket (or equivalent) that reads at most `most` bytes, so that a hostile server cannot fill our memory."""

    def __init__(self, sock: Any, most: int) -> None:
        self._sock = sock
        self.most = most
        self.taken = 0
        self.first = b""
        self.ended = False
        self.flooded = False

    def recv(self, size: int) -> bytes:
        """Receive at most `size` bytes. Once `most` is reached, return nothing, as if the peer had closed."""
        if self.taken >= self.most:
            self.flooded = True
            return b""
        data: bytes = self._noting(self._sock.recv, size)
        self.first = self.first or data[:60]
        self.taken += len(data)
        self.ended = not data
        return data

    def send(self, data: bytes) -> int:
        return int(self._noting(self._sock.send, data))

    def _noting(self, step: Callable[[Any], Any], what: Any) -> Any:
        """Run the body and remember whether the peer was gone."""
        try:
            return step(what)
        except TimeoutError:
            raise
        except OSError:
            self.ended = True
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def place(settings: Settings) -> str:
    """Return the host and port for messages."""
    return f"{plain_text.plain(settings.host, 100)} port {settings.port}"


def tcp(settings: Settings, target: Target, deadline: Deadline, seconds: float) -> socket.socket:
    """Connect to the host's first address that answers. Raise UnreachableError (unresolved, refused, unreachable)."""
    families = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
    family = families.get(settings.one("addressfamily"), socket.AF_UNSPEC)
    stage, deadline.stage = deadline.stage, "resolving the name"
    try:
        found = socket.getaddrinfo(settings.host, settings.port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not a name that can be looked up"
        text = f"{plain_text.plain(settings.host, 100)}: {reason}{openssh.advice('unresolved', target, settings)}"
        raise UnreachableError("unresolved", text) from None
    deadline.stage = stage
    trouble: OSError | None = None
    begun = deadline.spent()
    for each, kind, protocol, _, address in found:
        sock = socket.socket(each, kind, protocol)
        try:
            sock.settimeout(deadline.left(seconds))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as problem:
            sock.close()
            trouble = problem
        else:
            return sock
    raise _no_tcp(trouble, settings, target, deadline.spent() - begun)


def _no_tcp(problem: OSError | None, settings: Settings, target: Target, seconds: float) -> UnreachableError:
    """Return the error after this many seconds of trying."""
    where = place(settings)
    if isinstance(problem, ConnectionRefusedError):
        return UnreachableError(
            "refused", f"{where} refused the connection{openssh.advice('refused', target, settings)}"
        )
    if isinstance(problem, TimeoutError):
        text = f"{where} did not answer within {round(seconds, 1):g} s: is the host up, and can this machine reach it?"
        return UnreachableError("unreachable", text)
    return UnreachableError(
        "unreachable", f"{where}: {(problem.strerror or str(problem)).lower() if problem else 'no address'}"
    )


def by_command(command: str, deadline: Deadline) -> socket.socket:
    """Return a socket that is connected to a ProxyCommand."""
    here, there = socket.socketpair()
    with there:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=there.fileno(),
            stdout=there.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    deadline.on_end(lambda: pipes.kill(process))
    return _Piped(here, process)


class _Piped(socket.socket):
    """A socket that ends its process when it closes."""

    def __init__(self, sock: socket.socket, process: subprocess.Popen[bytes]) -> None:
        super().__init__(sock.family, sock.type, sock.proto, sock.detach())
        self._process = process

    def close(self) -> None:
        super().close()
        pipes.kill(self._process)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
