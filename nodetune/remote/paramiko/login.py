"""Authenticate to a server with paramiko."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import paramiko
from paramiko.ssh_exception import BadAuthenticationType

from nodetune.foundation import text as plain_text
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.login import openssh
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.ssh_config import Settings
from nodetune.remote.paramiko.keys import Offer

SECONDS = 30.0


class Login:
    """One login in progress: the methods that were tried and those that the server still accepts."""

    def __init__(self, transport: paramiko.Transport, user: str, deadline: Deadline) -> None:
        self._transport = transport
        self._user = user
        self._deadline = deadline
        self._allowed: list[str] | None = None
        self._tried: list[str] = []

    @property
    def done(self) -> bool:
        return self._transport.is_authenticated()

    def may(self, method: str) -> bool:
        """Return whether the server may still accept this method."""
        return self._transport.is_active() and (self._allowed is None or method in self._allowed)

    def by_keys(self, offers: list[Offer]) -> paramiko.PKey | None:
        """Offer keys until the server accepts one, alone or as a first factor. Return that key."""
        for offer in offers:
            key = offer.key
            if key is None or offer.hardware:
                self._tried.append(offer.problem or f"{offer.label}: a hardware key")
            elif self._try(offer.label, lambda key=key: self._transport.auth_publickey(self._user, key)):  # type: ignore[misc]
                return key
            if not self.may("publickey"):
                break
        return None

    def by_password(self, password: str) -> None:
        if self.may("password") or self.may("keyboard-interactive"):
            self._try("password", lambda: self._transport.auth_password(self._user, password))

    def _try(self, label: str, step: Callable[[], list[str]]) -> bool:
        self._transport.auth_timeout = self._deadline.left(SECONDS)
        self._tried.append(label)
        try:
            self._allowed = step() or self._allowed
        except BadAuthenticationType as problem:
            self._allowed = list(problem.allowed_types)
            return False
        except (paramiko.SSHException, OSError, EOFError):
            self._deadline.left()
            return False
        return True

    def failure(self, target: Target, settings: Settings) -> UnreachableError:
        """Return the error for a login in which nothing was accepted."""
        tried = f"tried {', '.join(self._tried[:6])}" if self._tried else "no key or password to try"
        takes = f"; the server accepts {plain_text.plain(', '.join(self._allowed), 100)}" if self._allowed else ""
        active = self._transport.is_active()
        gone = "" if active else "; the server then hung up: set one key with ansible_ssh_private_key_file"
        text = f"{tried}{takes}{gone}{openssh.advice('authentication failed', target, settings)}"
        return UnreachableError("authentication failed", text)


def only_openssh(settings: Settings, login: Login, offers: list[Offer]) -> str:
    """Return what the OpenSSH client could still try after paramiko has failed; empty if nothing."""
    if any(offer.hardware for offer in offers):
        return "it may need a hardware key"
    path = settings.one("controlpath")
    if path and Path(path).exists():
        return "there is a ControlPath connection to it"
    if settings.one("gssapiauthentication") == "yes" and login.may("gssapi-with-mic") and _has_ticket():
        return "it may need a Kerberos ticket"
    return ""


def _has_ticket() -> bool:
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(["klist", "-s"], stdin=quiet, stdout=quiet, stderr=quiet, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
