"""SSH by paramiko: all hosts in one process. The user's OpenSSH configuration sets host keys, logins and jump hosts."""

import logging
import select
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

import paramiko
from paramiko.ssh_exception import ChannelException, IncompatiblePeer

from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.login import openssh
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.host_keys import HostKeys
from nodetune.remote.login.session import Session
from nodetune.remote.login.ssh_config import Resolver, Settings, config_files
from nodetune.remote.paramiko import jump, login, sockets
from nodetune.remote.paramiko.jump import JumpHostError
from nodetune.remote.paramiko.keys import Keys
from nodetune.remote.paramiko.sockets import Socket

HANDSHAKE_SECONDS = 20.0
HANDSHAKE_BYTES = 256 << 10
"""More than any server sends before the login; without it, an endless first line would be read forever."""

OVERHEAD_BYTES = 8 << 20
CHUNK = 32 << 10
ONLY_OPENSSH = (
    "pkcs11provider",
    "certificatefile",
    "knownhostscommand",
    "revokedhostkeys",
    "bindaddress",
    "bindinterface",
)
TROUBLE = (paramiko.SSHException, OSError, EOFError)
"""All exceptions that paramiko raises about a connection."""

logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


def needs_openssh(settings: Settings, keys: HostKeys, target: Target) -> str:
    """Return why this host needs the OpenSSH client from the start, or an empty text."""
    if any(line.marker == "cert-authority" for line in keys.lines(openssh.host_of(target, settings))):
        return "known_hosts has a certificate authority for this host"
    for keyword in ONLY_OPENSSH:
        if settings.one(keyword):
            return f"{keyword} is set"
    if settings.one("proxyusefdpass") == "yes":
        return "ProxyUseFdpass is set"
    if settings.one("proxycommand") and "%" in settings.expand(settings.one("proxycommand")):
        return "its ProxyCommand has a token that only OpenSSH knows"
    return ""


class Connections:
    """Resources that the hosts of one run share: known host keys, login keys, and connections to jump hosts."""

    def __init__(self, options: SessionOptions, resolver: Resolver, host_keys: HostKeys) -> None:
        self._options = options
        self._resolver = resolver
        self._host_keys = host_keys
        self._keys = Keys()
        self._worked: dict[str, paramiko.PKey] = {}
        self._jumps: dict[tuple[object, ...], jump.Jump] = {}
        self._lock = threading.Lock()
        self._life = Deadline(float("inf"))

    def run(self, target: Target, settings: Settings, session: Session, deadline: Deadline) -> int | None:
        """Log in, run the session, and return the command's exit status. Raise UnreachableError or JumpHostError."""
        transport, carrier = self._login(target, settings, deadline, ())
        carrier.most = carrier.taken + session.most_bytes + OVERHEAD_BYTES
        try:
            status = _converse(transport, session, deadline)
        except TROUBLE as problem:
            raise _broken(problem, carrier, deadline) from None
        finally:
            _close(transport)
        if carrier.flooded:
            raise _broken(EOFError(), carrier, deadline)
        return status

    def close(self) -> None:
        """Close the shared resources. Hosts that still use them fail."""
        self._life.cut()
        self._keys.close()

    def _login(
        self, target: Target, settings: Settings, deadline: Deadline, chain: tuple[str, ...]
    ) -> tuple[paramiko.Transport, Socket]:
        deadline.stage = "connecting"
        carrier = Socket(self._socket(target, settings, deadline, chain), HANDSHAKE_BYTES)
        transport = paramiko.Transport(carrier)  # type: ignore[arg-type]
        _prefer_authenticated_ciphers(transport)
        deadline.on_end(lambda: _close(transport))
        try:
            self._handshake(transport, carrier, settings, target, deadline)
            self._authenticate(transport, target, settings, deadline)
        except BaseException:
            _close(transport)
            raise
        return transport, carrier

    def _socket(self, target: Target, settings: Settings, deadline: Deadline, chain: tuple[str, ...]) -> Any:
        command, hops = settings.one("proxycommand"), settings.one("proxyjump")
        if hops:
            return self._through(hops, target, settings, deadline, chain)
        if command:
            return sockets.by_command(settings.expand(command), deadline)
        return sockets.tcp(settings, target, deadline, self._options.connect_seconds)

    def _through(
        self, hops: str, target: Target, settings: Settings, deadline: Deadline, chain: tuple[str, ...]
    ) -> Any:
        """Open a channel to the host through the last of its jump hosts."""
        if hops in chain:
            raise UnreachableError("unsupported", f"ProxyJump is circular: {' → '.join((*chain, hops))}")
        before, _, last = hops.rpartition(",")
        with self._lock:
            shared = self._jumps.setdefault((hops, config_files(target.ssh_args)), jump.Jump(last))
        deadline.stage = f"waiting for the jump host {last}"
        carrier = shared.transport(
            lambda: self._open_jump(jump.as_target(last, target), before, (*chain, hops)), deadline
        )
        there = (settings.host, settings.port)
        try:
            return carrier.open_channel("direct-tcpip", there, ("127.0.0.1", 0), timeout=deadline.left())
        except ChannelException as problem:
            raise _refused_by_jump(problem, last, settings) from None
        except TROUBLE as problem:
            raise UnreachableError("dropped", f"jump host {last}: {plain_text.plain(problem, 100)}") from None

    def _open_jump(self, hop: Target, before: str, chain: tuple[str, ...]) -> paramiko.Transport:
        life = Deadline(self._options.seconds)
        settings = self._resolver.resolve(hop)
        if before:
            settings = replace(settings, told={**settings.told, "proxyjump": (before,), "proxycommand": ("none",)})
        reason = needs_openssh(settings, self._host_keys, hop)
        if reason:
            raise JumpHostError(f"jump host {hop.name}: {reason}")
        transport, carrier = self._login(hop, settings, life, chain)
        carrier.most = 1 << 62  # it carries others, each bounded by itself
        self._life.on_end(lambda: _close(transport))
        return transport

    def _handshake(
        self, transport: paramiko.Transport, carrier: Socket, settings: Settings, target: Target, deadline: Deadline
    ) -> None:
        host = openssh.host_of(target, settings)
        _prefer(transport, {line.kind for line in self._host_keys.lines(host) if not line.marker})
        deadline.stage = "waiting for the SSH handshake"
        seconds = deadline.left(HANDSHAKE_SECONDS)
        transport.banner_timeout = transport.handshake_timeout = seconds
        try:
            transport.start_client(timeout=seconds)
            key = transport.get_remote_server_key()
        except IncompatiblePeer as problem:
            raise JumpHostError(f"no algorithm in common ({plain_text.plain(problem, 80)})") from None
        except TROUBLE as problem:
            raise _no_handshake(problem, carrier, settings, deadline) from None
        hashed = settings.one("hashknownhosts") == "yes"
        self._host_keys.check(host, key.get_name(), key.get_base64(), settings.trusts_new, hashed)

    def _authenticate(
        self, transport: paramiko.Transport, target: Target, settings: Settings, deadline: Deadline
    ) -> None:
        """Offer keys (first the one that other hosts accepted), then the password."""
        deadline.stage = f"logging in as {settings.user}"
        attempt = login.Login(transport, settings.user, deadline)
        worked = self._worked.get(settings.user)
        offers = sorted(self._keys.offers(settings), key=lambda offer: worked is None or offer.key != worked)
        key = attempt.by_keys(offers)
        if key is not None:
            self._worked[settings.user] = key
        if not attempt.done and target.password is not None:
            attempt.by_password(target.password)
        if attempt.done:
            return
        reason = login.only_openssh(settings, attempt, offers)
        raise JumpHostError(reason) if reason else attempt.failure(target, settings)


def _prefer(transport: paramiko.Transport, known: set[str]) -> None:
    """Ask the server for a host key of a known type, as OpenSSH does."""
    wanted = known | ({"rsa-sha2-512", "rsa-sha2-256"} if "ssh-rsa" in known else set())
    security = transport.get_security_options()
    security.key_types = sorted(security.key_types, key=lambda kind: kind not in wanted)


def _no_handshake(problem: BaseException, carrier: Socket, settings: Settings, deadline: Deadline) -> UnreachableError:
    place = sockets.place(settings)
    began = plain_text.plain(carrier.first.decode("utf-8", "replace").strip(), 60)
    if carrier.first and not began.startswith(("SSH-", "Exceeded MaxStartups", "Not allowed")):
        return UnreachableError("bad answer", f"the service at {place} is not SSH; it sent: {began}")
    if carrier.ended or isinstance(problem, ConnectionError):
        silent = "without a message: sshd may be overloaded (MaxStartups) or reject this machine"
        why = f"saying: {began}" if began else silent
        return UnreachableError("dropped", f"{place} closed the connection before the login, {why}")
    said = "sent nothing" if carrier.taken == 0 else f"stopped sending after {carrier.taken} bytes"
    return UnreachableError(
        "deadline", f"{place} accepted the connection and {said}: no SSH handshake within {deadline.spent():.0f} s"
    )


def _broken(problem: BaseException, carrier: Socket, deadline: Deadline) -> UnreachableError:
    if carrier.flooded:
        return UnreachableError("too much output", f"cut off after {plain_text.size(carrier.taken)}")
    if deadline.spent() >= deadline.seconds:
        return deadline.overdue()
    what = plain_text.plain(problem, 100) or type(problem).__name__
    return UnreachableError("dropped", f"the connection broke, was {deadline.stage}: {what}")


def _refused_by_jump(problem: ChannelException, name: str, settings: Settings) -> UnreachableError:
    if problem.code == 1:
        return UnreachableError("unsupported", f"jump host {name} forbids forwarding (AllowTcpForwarding)")
    text = f"jump host {name} cannot connect to {sockets.place(settings)}: is the host up, and is sshd listening there?"
    return UnreachableError("unreachable", text)


def _converse(transport: paramiko.Transport, session: Session, deadline: Deadline) -> int | None:
    """Run the session's command and transfer data until the answer is complete or the command has ended."""
    deadline.stage = "starting the command"
    channel = transport.open_session(timeout=deadline.left())
    channel.exec_command(session.command)
    news = select.poll()
    for handle in (channel.fileno(), session.wake):
        if handle is not None:
            news.register(handle, select.POLLIN)
    while not (_hear(channel, session) or channel.closed or channel.eof_received):
        deadline.stage = session.waiting_for
        if session.to_send and channel.send_ready():
            session.sent(channel.send(bytes(session.to_send[:CHUNK])))
            continue
        if session.input_done and not channel.eof_sent:
            channel.shutdown_write()
        news.poll(1000 * deadline.left(0.05 if session.to_send else 1.0))
        session.woken()
    if session.complete:
        return None
    channel.status_event.wait(deadline.left(5.0))
    _hear(channel, session)
    return channel.exit_status if channel.exit_status >= 0 else None


def _hear(channel: paramiko.Channel, session: Session) -> bool:
    """Take everything that has arrived. Return True when the answer is complete."""
    while not session.complete and (channel.recv_ready() or channel.recv_stderr_ready()):
        if channel.recv_ready():
            session.output(channel.recv(CHUNK))
        if channel.recv_stderr_ready():
            session.errors(channel.recv_stderr(CHUNK))
    return session.complete


def _close(transport: paramiko.Transport) -> None:
    """Close a connection and paramiko's timer for it, which would keep this process alive."""
    for step in (transport.packetizer.complete_handshake, transport.close, transport.sock.close):
        with suppress(Exception):
            step()


def _prefer_authenticated_ciphers(transport: paramiko.Transport) -> None:
    """Prefer AES-GCM if this paramiko has it: Python compares other ciphers' checksums byte by byte."""
    options = transport.get_security_options()
    options.ciphers = sorted(options.ciphers, key=lambda name: "gcm" not in name)
