"""SSH by paramiko: all hosts in one process. Host keys, logins and jump hosts as the user's OpenSSH configuration has them."""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import paramiko
from paramiko.ssh_exception import BadAuthenticationType, ChannelException, IncompatiblePeer

from nodetune import show
from nodetune.transport import Options, Target, Unreachable, pipes, ssh
from nodetune.transport.hostkeys import HostKeys
from nodetune.transport.keys import Keys
from nodetune.transport.lifeline import Lifeline
from nodetune.transport.settings import Resolver, Settings, config_files
from nodetune.transport.talk import Talk

HANDSHAKE_SECONDS = 20.0
HANDSHAKE_BYTES = 256 << 10
"""More than any server says before the login; a reader of an endless first line would go on for ever."""

OVERHEAD_BYTES = 8 << 20
CHUNK = 32 << 10
DEEPEST_JUMP = 8

logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


class Beyond(Exception):
    """What this host needs is beyond paramiko; the text says what, so that the OpenSSH client can take over."""


class Wire:
    """A socket (or what behaves like one) that reads no more than `most` bytes: a hostile server cannot fill our memory."""

    def __init__(self, sock: Any, most: int) -> None:
        self._sock = sock
        self.most = most
        self.taken = 0
        self.ended = False
        self.flooded = False

    def recv(self, size: int) -> bytes:
        if self.taken >= self.most:
            self.flooded = True
            return b""
        data: bytes = self._sock.recv(size)
        self.taken += len(data)
        self.ended = not data
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def needs_openssh(settings: Settings, keys: HostKeys, target: Target) -> str:
    """Why this host must be left to the OpenSSH client from the start; empty when it need not."""
    if any(line.marker == "cert-authority" for line in keys.lines(ssh.host_of(target, settings))):
        return "known_hosts has a certificate authority for it"
    for keyword in (
        "pkcs11provider",
        "certificatefile",
        "knownhostscommand",
        "revokedhostkeys",
        "bindaddress",
        "bindinterface",
    ):
        if settings.one(keyword):
            return f"{keyword} is set"
    if settings.one("proxyusefdpass") == "yes":
        return "ProxyUseFdpass is set"
    return ""


class Connections:
    """What the hosts of one run share: known host keys, login keys, and the connections to jump hosts."""

    def __init__(self, options: Options, resolver: Resolver, host_keys: HostKeys) -> None:
        self._options = options
        self._resolver = resolver
        self._host_keys = host_keys
        self._keys = Keys()
        self._worked: dict[str, bytes] = {}
        self._jumps: dict[tuple[object, ...], Jump] = {}
        self._lock = threading.Lock()
        self._life = Lifeline(float("inf"))

    def run(self, target: Target, settings: Settings, talk: Talk, life: Lifeline) -> int | None:
        """Log in, hold the talk, and return the command's exit status. Raises Unreachable, or Beyond."""
        transport, wire = self._login(target, settings, life, 0)
        try:
            wire.most = wire.taken + self._options.most_bytes + OVERHEAD_BYTES
            status = _converse(transport, talk, life)
            if wire.flooded:
                raise Unreachable("too much output", f"cut off after {show.size(wire.taken)}")
            return status
        except (paramiko.SSHException, OSError, EOFError) as problem:
            raise _broken(problem, wire, life) from None
        finally:
            _close(transport)

    def close(self) -> None:
        """End what is shared. Hosts that still use it fail."""
        self._life.cut()
        self._keys.close()

    def _login(self, target: Target, settings: Settings, life: Lifeline, depth: int) -> tuple[paramiko.Transport, Wire]:
        life.stage = "connecting"
        wire = Wire(self._socket(target, settings, life, depth), HANDSHAKE_BYTES)
        transport = paramiko.Transport(wire)  # type: ignore[arg-type]
        life.on_end(lambda: _close(transport))
        try:
            self._handshake(transport, wire, settings, target, life)
            self._authenticate(transport, target, settings, life)
        except BaseException:
            _close(transport)
            raise
        return transport, wire

    def _socket(self, target: Target, settings: Settings, life: Lifeline, depth: int) -> Any:
        command, jump = settings.one("proxycommand"), settings.one("proxyjump")
        if jump:
            return self._through(jump, target, settings, life, depth)
        if command:
            return _by_command(settings.expand(command), life)
        return _tcp(settings, target, life, self._options.connect_seconds)

    def _through(self, spec: str, target: Target, settings: Settings, life: Lifeline, depth: int) -> Any:
        """A channel to the host, opened by the last of its jump hosts."""
        if depth >= DEEPEST_JUMP:
            raise Unreachable(
                "unsupported",
                f"more than {DEEPEST_JUMP} jump hosts one behind the other: ProxyJump goes round in circles",
            )
        before, _, last = spec.rpartition(",")
        hop = _hop(last, before, target)
        key = (last, before, config_files(target.ssh_args))
        with self._lock:
            jump = self._jumps.setdefault(key, Jump(last))
        life.stage = f"waiting for the jump host {last}"
        transport = jump.transport(lambda: self._open_jump(hop, before, depth), life)
        try:
            return transport.open_channel(
                "direct-tcpip", (settings.host, settings.port), ("127.0.0.1", 0), timeout=life.left()
            )
        except ChannelException as problem:
            raise _refused_by_jump(problem, last, settings) from None
        except (paramiko.SSHException, OSError, EOFError) as problem:
            raise Unreachable("dropped", f"jump host {last}: {show.plain(problem, 100)}") from None

    def _open_jump(self, hop: Target, before: str, depth: int) -> paramiko.Transport:
        life = Lifeline(self._options.seconds)
        settings = self._resolver.resolve(hop)
        if before:
            settings = settings.with_jump(before)
        reason = needs_openssh(settings, self._host_keys, hop)
        if reason:
            raise Beyond(f"jump host {hop.name}: {reason}")
        transport, wire = self._login(hop, settings, life, depth + 1)
        wire.most = 1 << 62  # it carries others, each bounded by itself
        self._life.on_end(lambda: _close(transport))
        return transport

    def _handshake(
        self, transport: paramiko.Transport, wire: Wire, settings: Settings, target: Target, life: Lifeline
    ) -> None:
        host = ssh.host_of(target, settings)
        known = {line.kind for line in self._host_keys.lines(host) if not line.marker}
        _prefer(transport, known)
        life.stage = "waiting for the SSH handshake"
        seconds = life.left(HANDSHAKE_SECONDS)
        transport.banner_timeout = transport.handshake_timeout = seconds
        try:
            transport.start_client(timeout=seconds)
            key = transport.get_remote_server_key()
        except IncompatiblePeer as problem:
            raise Beyond(f"no algorithm in common ({show.plain(problem, 80)})") from None
        except (paramiko.SSHException, OSError, EOFError) as problem:
            raise _no_handshake(problem, wire, settings, life) from None
        self._host_keys.check(
            host, key.get_name(), key.get_base64(), settings.trusts_new, settings.one("hashknownhosts") == "yes"
        )

    def _authenticate(self, transport: paramiko.Transport, target: Target, settings: Settings, life: Lifeline) -> None:
        """Offer keys, then the password. Raises Unreachable, or Beyond where OpenSSH has another way."""
        life.stage = f"logging in as {settings.user}"
        login = Login(transport, settings.user, life)
        offers = sorted(
            self._keys.offers(settings),
            key=lambda offer: not (offer.key and self._worked.get(settings.user) == offer.key.asbytes()),
        )
        for offer in offers:
            if offer.key is None or offer.hardware:
                login.tried.append(offer.problem or offer.label)
            elif login.by_key(offer.label, offer.key):
                self._worked[settings.user] = offer.key.asbytes()
                break
            if not login.may("publickey"):
                break
        if not transport.is_authenticated() and target.password is not None:
            login.by_password(target.password)
        if transport.is_authenticated():
            return
        if any(offer.hardware for offer in offers):
            raise Beyond("it may want a hardware key")
        reason = _other_logins(settings, login)
        if reason:
            raise Beyond(reason)
        raise login.failure(target, settings)


class Login:
    """One login in progress: what was tried, and what the server would still take."""

    def __init__(self, transport: paramiko.Transport, user: str, life: Lifeline) -> None:
        self._transport = transport
        self._user = user
        self._life = life
        self._allowed: list[str] | None = None
        self.tried: list[str] = []

    def may(self, method: str) -> bool:
        return self._transport.is_active() and (self._allowed is None or method in self._allowed)

    def by_key(self, label: str, key: paramiko.PKey) -> bool:
        """Whether the server is content with this key, for now or for good."""
        return self._try(label, lambda: self._transport.auth_publickey(self._user, key))

    def by_password(self, password: str) -> None:
        if self.may("password") or self.may("keyboard-interactive"):
            self._try("password", lambda: self._transport.auth_password(self._user, password))

    def _try(self, label: str, step: Callable[[], list[str]]) -> bool:
        self._transport.auth_timeout = self._life.left(30.0)
        self.tried.append(label)
        try:
            self._allowed = step() or self._allowed
        except BadAuthenticationType as problem:
            self._allowed = list(problem.allowed_types)
            return False
        except (paramiko.SSHException, OSError, EOFError):
            self._life.left()
            return False
        return True

    def failure(self, target: Target, settings: Settings) -> Unreachable:
        takes = f"; the server takes {show.plain(', '.join(self._allowed), 100)}" if self._allowed else ""
        gone = (
            ""
            if self._transport.is_active()
            else "; the server then hung up: name one key with ansible_ssh_private_key_file"
        )
        tried = f"tried {', '.join(self.tried[:6])}" if self.tried else "no key or password to try"
        return Unreachable(
            "authentication failed", f"{tried}{takes}{gone}{ssh.advice('authentication failed', target, settings)}"
        )


class Jump:
    """A connection to a jump host, shared by all hosts behind it. One failure is everybody's: nobody tries again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._transport: paramiko.Transport | None = None
        self._failure: Exception | None = None

    def transport(self, connect: Callable[[], paramiko.Transport], life: Lifeline) -> paramiko.Transport:
        if not self._lock.acquire(timeout=life.left()):
            raise life.overdue()
        try:
            if self._failure:
                raise self._failure
            if self._transport is None or not self._transport.is_active():
                self._transport = connect()
            return self._transport
        except Unreachable as problem:
            about = f"jump host {self._name}: "
            message = problem.message if problem.message.startswith(about) else about + problem.message
            self._failure = Unreachable(problem.state, message)
            raise self._failure from None
        except Beyond as problem:
            self._failure = problem
            raise
        finally:
            self._lock.release()


def _hop(spec: str, before: str, target: Target) -> Target:
    """A jump host as a target of its own. As with OpenSSH, it sees the configuration file but no other argument."""
    login, _, place = spec.strip().removeprefix("ssh://").rpartition("@")
    host, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    host = (host if colon else place).strip("[]")
    files = config_files(target.ssh_args)
    given = () if files == config_files(()) else ("-F", files[0] if files else "none")
    return Target(host, port=int(port) if port.isdigit() else None, user=login or None, ssh_args=given)


def _tcp(settings: Settings, target: Target, life: Lifeline, seconds: float) -> socket.socket:
    """Connect to the first of the host's addresses that answers."""
    families = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, families.get(settings.one("addressfamily"), 0), socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not a name that can be looked up"
        raise Unreachable(
            "unresolved", f"{show.plain(settings.host, 100)}: {reason}{ssh.advice('unresolved', target, settings)}"
        ) from None
    trouble: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(life.left(seconds))
            sock.connect(address)
        except OSError as problem:
            sock.close()
            trouble = problem
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    raise _no_tcp(trouble, settings, target, seconds)


def _no_tcp(problem: OSError | None, settings: Settings, target: Target, seconds: float) -> Unreachable:
    place = f"{show.plain(settings.host, 100)} port {settings.port}"
    if isinstance(problem, ConnectionRefusedError):
        return Unreachable("refused", f"{place} refused the connection{ssh.advice('refused', target, settings)}")
    if isinstance(problem, TimeoutError):
        return Unreachable(
            "unreachable",
            f"{place} did not answer within {seconds:g} s: is the host up, and may this machine reach it?",
        )
    return Unreachable(
        "unreachable", f"{place}: {(problem.strerror or str(problem)).lower() if problem else 'has no address'}"
    )


def _by_command(command: str, life: Lifeline) -> socket.socket:
    """A socket whose other end is a ProxyCommand."""
    if "%" in command.replace("%%", ""):
        raise Beyond(f"ProxyCommand with a token that only OpenSSH knows: {command[:100]}")
    here, there = socket.socketpair()
    with there:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=there,
            stdout=there,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    life.on_end(lambda: pipes.kill(process))
    return Piped(here, process)


class Piped(socket.socket):
    """A socket that takes its process with it."""

    def __init__(self, sock: socket.socket, process: subprocess.Popen[bytes]) -> None:
        super().__init__(sock.family, sock.type, sock.proto, sock.detach())
        self._process = process

    def close(self) -> None:
        super().close()
        pipes.kill(self._process)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)


def _prefer(transport: paramiko.Transport, known: set[str]) -> None:
    """Ask the server for a key of a kind that is known, as OpenSSH does."""
    security = transport.get_security_options()
    wanted = {"rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"} if "ssh-rsa" in known else set()
    kinds = list(security.key_types)
    security.key_types = sorted(kinds, key=lambda kind: kind not in known | wanted)


def _no_handshake(problem: BaseException, wire: Wire, settings: Settings, life: Lifeline) -> Unreachable:
    place = f"{show.plain(settings.host, 100)} port {settings.port}"
    if wire.flooded or "ndecipherable" in str(problem) or "protocol version" in str(problem):
        return Unreachable("bad answer", f"what listens at {place} does not speak SSH")
    if wire.ended:
        return Unreachable(
            "dropped",
            f"{place} closed the connection before the login: its sshd may be overloaded (MaxStartups) or not let this machine in",
        )
    if isinstance(problem, ConnectionError):
        return Unreachable("dropped", f"{place}: {problem.strerror or 'connection lost'}".lower())
    said = "said nothing" if wire.taken == 0 else f"fell silent after {wire.taken} bytes"
    return Unreachable("deadline", f"{place} took the connection and {said} for {life.spent():.0f} s, was {life.stage}")


def _broken(problem: BaseException, wire: Wire, life: Lifeline) -> Unreachable:
    if wire.flooded:
        return Unreachable("too much output", f"cut off after {show.size(wire.taken)}")
    life.left()  # raises when that is why
    return Unreachable(
        "dropped", f"the connection broke, was {life.stage}: {show.plain(problem, 100) or type(problem).__name__}"
    )


def _refused_by_jump(problem: ChannelException, jump: str, settings: Settings) -> Unreachable:
    place = f"{show.plain(settings.host, 100)} port {settings.port}"
    if problem.code == 1:
        return Unreachable("unsupported", f"jump host {jump} forbids forwarding (AllowTcpForwarding)")
    return Unreachable(
        "unreachable", f"jump host {jump} cannot connect to {place}: is the host up, and sshd listening there?"
    )


def _other_logins(settings: Settings, login: Login) -> str:
    """What OpenSSH could still try after all of ours has failed."""
    path = settings.one("controlpath")
    if path and os.path.exists(os.path.expanduser(path)):
        return "there is a ControlPath connection to it"
    if settings.one("gssapiauthentication") == "yes" and login.may("gssapi-with-mic") and _has_ticket():
        return "it may want a Kerberos ticket"
    return ""


def _has_ticket() -> bool:
    try:
        return (
            subprocess.run(
                ["klist", "-s"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=5,
                check=False,
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _converse(transport: paramiko.Transport, talk: Talk, life: Lifeline) -> int | None:
    """Run the talk's command and carry what is said, until the answer is complete or the command has ended."""
    life.stage = "starting the command"
    channel = transport.open_session(timeout=life.left())
    channel.exec_command(talk.command)
    something = select.poll()
    something.register(channel.fileno(), select.POLLIN)
    told_end = False
    while not talk.complete:
        life.stage = talk.waiting_for
        while channel.recv_ready() or channel.recv_stderr_ready():
            _hear(channel, talk)
        if channel.closed or channel.eof_received or talk.complete:
            break
        if talk.to_send and channel.send_ready():
            talk.sent(channel.send(talk.to_send[:CHUNK]))
            continue
        if talk.input_done and not told_end:
            channel.shutdown_write()
            told_end = True
        something.poll(1000 * life.left(0.05 if talk.to_send else 1.0))
    if talk.complete:
        return None
    channel.status_event.wait(life.left(5.0))
    while channel.recv_ready() or channel.recv_stderr_ready():
        _hear(channel, talk)
    return channel.exit_status if channel.exit_status >= 0 else None


def _hear(channel: paramiko.Channel, talk: Talk) -> None:
    if channel.recv_ready():
        talk.output(channel.recv(CHUNK))
    if channel.recv_stderr_ready():
        talk.errors(channel.recv_stderr(CHUNK))


def _close(transport: paramiko.Transport) -> None:
    """End a connection, and paramiko's timer for it, which would keep this process from ending."""
    with suppress(Exception):
        transport.packetizer.complete_handshake()
    with suppress(Exception):
        transport.close()
    with suppress(Exception):
        transport.sock.close()
