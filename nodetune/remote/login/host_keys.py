"""known_hosts: the keys that a host may present. Read once for all hosts, and never more trusting than OpenSSH."""

import base64
import hashlib
import hmac
import os
import secrets
import shlex
import threading
from dataclasses import dataclass, field
from pathlib import Path

from nodetune.hosts.target import UnreachableError
from nodetune.remote.login.ssh_config import applies


@dataclass(frozen=True)
class Line:
    """One key of a known_hosts file; `marker` is "", "cert-authority" or "revoked"."""

    marker: str
    kind: str
    key: str
    where: str


@dataclass
class KnownHosts:
    """The content of known_hosts files, grouped by how their lines name hosts."""

    exact: dict[str, list[Line]] = field(default_factory=dict)
    patterns: list[tuple[list[str], Line]] = field(default_factory=list)
    hashed: list[tuple[bytes, bytes, Line]] = field(default_factory=list)

    def read(self, file: str) -> None:
        """Add a file's lines. A missing file has none."""
        try:
            lines = Path(file).read_text("utf-8", "replace").splitlines()
        except OSError:
            return
        for number, text in enumerate(lines, 1):
            words = text.split()
            marker = words.pop(0)[1:].lower() if words and words[0].startswith("@") else ""
            if len(words) >= 3 and not words[0].startswith("#"):
                self.add(words[0], Line(marker, words[1], words[2].rstrip("="), f"{file}:{number}"))

    def add(self, names: str, line: Line) -> None:
        if names.startswith("|1|"):
            salt, _, digest = names[3:].partition("|")
            self.hashed.append((_decoded(salt), _decoded(digest), line))
        elif set(names) & set("*?!"):
            self.patterns.append((names.lower().split(","), line))
        else:
            for name in names.lower().split(","):
                self.exact.setdefault(name, []).append(line)

    def of(self, name: str) -> list[Line]:
        """Return the lines for a host by its name in known_hosts."""
        found = list(self.exact.get(name, ()))
        # in [host]:port the brackets mean themselves
        found += [line for words, line in self.patterns if applies([word.replace("[", "[[]") for word in words], name)]
        data = name.encode("utf-8", "replace")
        return found + [line for salt, digest, line in self.hashed if hmac.digest(salt, data, "sha1") == digest]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


@dataclass(frozen=True)
class Host:
    """A host for key look-up: its name in known_hosts, the files, and the command for a manual login."""

    key_name: str
    bare_name: str
    port: int
    files: tuple[str, ...]
    login_command: str

    def unknown(self, shown: str = "") -> UnreachableError:
        scan = f"ssh-keyscan {'' if self.port == 22 else f'-p {self.port} '}{shlex.quote(self.bare_name)} | ssh-keygen -lf -"
        return UnreachableError(
            "unknown host key",
            f"{shown or 'its host key'} is not in {self.files[0] if self.files else 'any known_hosts file'}: inspect "
            f"it with `{scan}` and accept it with `{self.login_command}`, or trust new keys with "
            "--accept-new-host-keys",
        )

    def changed(self, shown: str, where: str, file: str) -> UnreachableError:
        return UnreachableError(
            "host key changed",
            f"{shown or 'its host key'} is not the one in {where}: someone may intercept the connection. If the host "
            f"was reinstalled: `ssh-keygen -R {shlex.quote(self.key_name)} -f {shlex.quote(file)}`, then "
            f"`{self.login_command}`",
        )


class HostKeys:
    """The known_hosts files of a run."""

    def __init__(self, accept_new: bool) -> None:
        self._accept_new = accept_new
        self._read: dict[tuple[str, ...], KnownHosts] = {}
        self._lock = threading.Lock()

    def known(self, files: tuple[str, ...]) -> KnownHosts:
        with self._lock:
            if files not in self._read:
                self._read[files] = KnownHosts()
                for file in files:
                    self._read[files].read(file)
            return self._read[files]

    def lines(self, host: Host) -> list[Line]:
        return self.known(host.files).of(host.key_name)

    def check(self, host: Host, kind: str, key: str, trusts_new: bool, hash_names: bool) -> None:
        """Raise UnreachableError (unknown host key, host key changed) unless the host may present this key.

        A host with known keys must present one of them: a key of another type does not count as new.
        """
        key = key.rstrip("=")
        shown = f"the host key {kind} {fingerprint(key)}"
        lines = self.lines(host)
        for line in lines:
            if line.marker == "revoked" and line.key == key:
                raise UnreachableError(
                    "host key changed", f"{shown} is marked as revoked in {line.where}: do not log in"
                )
        plain = [line for line in lines if not line.marker]
        if any(line.key == key for line in plain):
            return
        if not plain and any(
            line.key == key and not line.marker for line in self.known(host.files).of(host.bare_name.lower())
        ):
            return  # as OpenSSH does for ports other than 22
        if plain:
            where = next((line.where for line in plain if line.kind == kind), plain[0].where)
            raise host.changed(shown, where, where.rpartition(":")[0])
        if not (self._accept_new or trusts_new):
            raise host.unknown(shown)
        self._trust(host, kind, key, hash_names)

    def _trust(self, host: Host, kind: str, key: str, hash_names: bool) -> None:
        """Write a key to the user's known_hosts so that the next look-up finds it."""
        if not host.files:
            return
        padded = key + "=" * (-len(key) % 4)
        text = f"{_hashed(host.key_name) if hash_names else host.key_name} {kind} {padded}\n"
        file = host.files[0]
        known = self.known(host.files)
        with self._lock:
            _append(file, text)
            known.add(host.key_name, Line("", kind, key, file))


def _append(file: str, text: str) -> None:
    path = Path(file)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("ab+") as stream:
            if stream.tell() and os.pread(stream.fileno(), 1, stream.tell() - 1) not in (b"\n", b""):
                text = "\n" + text
            stream.write(text.encode())
    except OSError as problem:
        raise UnreachableError(
            "unknown host key", f"the host key cannot be added to {file}: {problem.strerror}"
        ) from None


def _hashed(name: str) -> str:
    salt = secrets.token_bytes(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def fingerprint(key: str) -> str:
    """Format a fingerprint like ssh-keygen -l."""
    digest = hashlib.sha256(_decoded(key + "=" * (-len(key) % 4))).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
