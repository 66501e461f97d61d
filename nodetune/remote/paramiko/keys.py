"""The keys for logins: files and the agent, in the order in which OpenSSH would offer them. Each is read once."""

import base64
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.agent import AgentSSH

from nodetune.foundation import text as plain_text
from nodetune.remote.login.ssh_config import Settings, home

AGENT_SECONDS = 10.0
DEFAULT_NAMES = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "id_dsa")


@dataclass(frozen=True)
class Offer:
    """One way to authenticate; without `key`, the reason why it cannot be used."""

    label: str
    key: paramiko.PKey | None
    problem: str = ""
    hardware: bool = False


class Agent(AgentSSH):  # type: ignore[misc, unused-ignore]
    """The agent behind one socket, usable by many threads."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(AGENT_SECONDS)
        try:
            self._socket.connect(path)
            self._connect(self._socket)  # type: ignore[attr-defined, unused-ignore]
        except (OSError, paramiko.SSHException):
            self._socket.close()

    def _send_message(self, msg: paramiko.Message) -> tuple[int, paramiko.Message]:
        with self._lock:
            return super()._send_message(msg)  # type: ignore[no-any-return, unused-ignore, misc]

    def close(self) -> None:
        self._socket.close()


class Keys:
    """All keys of a run."""

    def __init__(self) -> None:
        self._files: dict[str, Offer] = {}
        self._agents: dict[str, Agent] = {}
        self._lock = threading.Lock()

    def offers(self, settings: Settings) -> Iterator[Offer]:
        """Yield keys for a host: named keys, the agent's, and those in the usual files."""
        named = dict.fromkeys(settings.files("identityfile"))
        files = [file for file in named if Path(file).exists() or Path(f"{file}.pub").exists()]
        usual = {home(f"~/.ssh/{name}") for name in DEFAULT_NAMES}
        agent = {offer.key.asbytes(): offer for offer in self._agent_offers(settings) if offer.key}
        only_named = settings.one("identitiesonly") == "yes"
        used: set[bytes] = set()
        for file in (file for file in files if file not in usual):
            yield from self._from_file(file, agent, used)
        if not only_named:
            yield from (offer for blob, offer in agent.items() if blob not in used)
            used.update(agent)
        for file in (file for file in files if file in usual):
            yield from self._from_file(file, agent, used)

    def _from_file(self, file: str, agent: dict[bytes, Offer], used: set[bytes]) -> Iterator[Offer]:
        """Yield the agent's key if the agent has the key of the file, else the file's."""
        blob = _public(file)
        offer = agent.get(blob) if blob else None
        if offer is None:
            with self._lock:
                offer = self._files.get(file) or self._files.setdefault(file, _load(file))
        done = offer.key.asbytes() if offer.key else None
        if done is None or done not in used:
            used.update([done] if done else [])
            yield offer

    def _agent_offers(self, settings: Settings) -> list[Offer]:
        path = os.environ.get("SSH_AUTH_SOCK", "")
        named = settings.told.get("identityagent", ("SSH_AUTH_SOCK",))[0]
        if named != "SSH_AUTH_SOCK":
            path = home(os.path.expandvars(settings.expand(named)))
        if not path or path.lower() == "none":
            return []
        with self._lock:
            if path not in self._agents:
                self._agents[path] = Agent(path)
            keys = self._agents[path].get_keys()
        named_keys = [(key, f"agent key {plain_text.plain(key.comment or key.get_name(), 60)}") for key in keys]
        return [Offer(name, key, hardware=key.get_name().startswith("sk-")) for key, name in named_keys]

    def close(self) -> None:
        for agent in self._agents.values():
            agent.close()


def _public(file: str) -> bytes | None:
    """Return the public key that belongs to a private one."""
    try:
        text = Path(file if file.endswith(".pub") else f"{file}.pub").read_text("utf-8").split()
        return base64.b64decode(text[1]) if len(text) > 1 else None
    except (OSError, ValueError):
        return None


def _load(file: str) -> Offer:
    if file.endswith(".pub") or not Path(file).exists():
        return Offer(file, None, f"{file}: the agent does not have this key")
    try:
        return Offer(file, paramiko.PKey.from_path(file))
    except OSError as problem:
        return Offer(file, None, f"{file}: {(problem.strerror or str(problem)).lower()}")
    except Exception as problem:  # noqa: BLE001  (what it raises depends on the versions of two libraries)
        return _unusable(file, problem)


def _unusable(file: str, problem: Exception) -> Offer:
    public = (_public(file) or b"")[4:40]
    if public.startswith(b"sk-"):
        return Offer(file, None, f"{file}: a hardware key", hardware=True)
    encrypted = isinstance(problem, paramiko.PasswordRequiredException | TypeError)
    if encrypted or "ncrypted" in str(problem) or "assw" in str(problem):
        return Offer(file, None, f"{file} is encrypted: ssh-add {file}")
    return Offer(file, None, f"{file} cannot be used: {plain_text.plain(problem, 80)}")
