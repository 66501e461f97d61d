"""The byte streams under an SSH connection: TCP, or a ProxyCommand. What is read from one is bounded."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nodetune import show
from nodetune.transport import Target, Unreachable, pipes, ssh
from nodetune.transport.lifeline import Lifeline
from nodetune.transport.settings import Settings


class Wire:
    """A socket (or what behaves like one) that reads no more than `most` bytes: a hostile server cannot fill our memory."""

    def __init__(self, sock: Any, most: int) -> None:
        self._sock = sock
        self.most = most
        self.taken = 0
        self.first = b""
        self.ended = False
        self.flooded = False

    def recv(self, size: int) -> bytes:
        """At most `size` bytes; nothing more, as if the other end had closed, once `most` is reached."""
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
        """Do it, and remember whether the other end was gone."""
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
    """The host and port as messages name them."""
    return f"{show.plain(settings.host, 100)} port {settings.port}"


def tcp(settings: Settings, target: Target, life: Lifeline, seconds: float) -> socket.socket:
    """Connect to the first of the host's addresses that answers. Raises Unreachable (unresolved, refused, unreachable)."""
    families = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
    family = families.get(settings.one("addressfamily"), socket.AF_UNSPEC)
    try:
        found = socket.getaddrinfo(settings.host, settings.port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not a name that can be looked up"
        text = f"{show.plain(settings.host, 100)}: {reason}{ssh.advice('unresolved', target, settings)}"
        raise Unreachable("unresolved", text) from None
    trouble: OSError | None = None
    begun = life.spent()
    for each, kind, protocol, _, address in found:
        sock = socket.socket(each, kind, protocol)
        try:
            sock.settimeout(life.left(seconds))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as problem:
            sock.close()
            trouble = problem
        else:
            return sock
    raise _no_tcp(trouble, settings, target, life.spent() - begun)


def _no_tcp(problem: OSError | None, settings: Settings, target: Target, seconds: float) -> Unreachable:
    """The error after so many seconds of trying."""
    where = place(settings)
    if isinstance(problem, ConnectionRefusedError):
        return Unreachable("refused", f"{where} refused the connection{ssh.advice('refused', target, settings)}")
    if isinstance(problem, TimeoutError):
        text = f"{where} did not answer within {round(seconds, 1):g} s: is the host up, and may this machine reach it?"
        return Unreachable("unreachable", text)
    return Unreachable(
        "unreachable", f"{where}: {(problem.strerror or str(problem)).lower() if problem else 'no address'}"
    )


def by_command(command: str, life: Lifeline) -> socket.socket:
    """A socket whose other end is a ProxyCommand."""
    here, there = socket.socketpair()
    with there:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=there.fileno(),
            stdout=there.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    life.on_end(lambda: pipes.kill(process))
    return _Piped(here, process)


class _Piped(socket.socket):
    """A socket that takes its process with it."""

    def __init__(self, sock: socket.socket, process: subprocess.Popen[bytes]) -> None:
        super().__init__(sock.family, sock.type, sock.proto, sock.detach())
        self._process = process

    def close(self) -> None:
        super().close()
        pipes.kill(self._process)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
