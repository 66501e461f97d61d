"""The user's OpenSSH configuration for a host, from as few calls of `ssh -G` as possible."""

from __future__ import annotations

import getpass
import glob
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from nodetune.foundation import text as plain_text
from nodetune.hosts.target import Target, UnreachableError

SECONDS = 10.0
SYSTEM = "/etc/ssh/ssh_config"
USER = "~/.ssh/config"


@dataclass(frozen=True)
class Settings:
    """The settings that OpenSSH would use for one host.

    `name` is the requested name, `host` its resolved name; `told` is the output of `ssh -G` by lower-case keyword.
    """

    name: str
    host: str
    port: int = 22
    user: str = ""
    told: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def one(self, keyword: str, default: str = "") -> str:
        """Return the value of a keyword; `none` counts as not set."""
        value = self.told.get(keyword, (default,))[0]
        return default if value.lower() == "none" else value

    def files(self, keyword: str) -> tuple[str, ...]:
        """Return the full paths that a keyword names: one on each line, or several (known_hosts files)."""
        values = self.told.get(keyword, ())
        words = [value.strip('"') for value in values]
        if "known" in keyword:
            words = [word for value in values for word in _split(value)]
        return tuple(home(os.path.expandvars(self.expand(word))) for word in words if word.lower() != "none")

    def expand(self, text: str) -> str:
        """Replace OpenSSH's tokens in `text`; unknown ones stay."""
        if "%" not in text:
            return text
        tokens = {
            "%": "%",
            "d": home("~"),
            "h": self.host,
            "n": self.name,
            "p": str(self.port),
            "r": self.user,
            "u": getpass.getuser(),
        }
        return re.sub("%(.)", lambda found: tokens.get(found[1], found[0]), text)

    @property
    def key_name(self) -> str:
        """The name of the host in known_hosts."""
        alias = self.one("hostkeyalias")
        return alias or (self.host.lower() if self.port == 22 else f"[{self.host.lower()}]:{self.port}")

    @property
    def trusts_new(self) -> bool:
        """Whether the user's configuration accepts keys of new hosts."""
        return self.one("stricthostkeychecking", "ask").lower() in ("no", "off", "false", "accept-new")


def home(path: str) -> str:
    """Replace `~`; keep the text if there is no such user."""
    return os.path.expanduser(path)  # noqa: PTH111  (Path.expanduser raises)


@lru_cache  # the same few for all hosts
def _split(value: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(value))
    except ValueError:
        return tuple(value.split())


class Resolver:
    """Settings of hosts. `ssh -G` runs once for all hosts with equal settings except for the name."""

    def __init__(self) -> None:
        self._ssh = shutil.which("ssh")
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._known: dict[tuple[object, ...], Settings] = {}
        self._lock = threading.Lock()

    def resolve(self, target: Target, seconds: float = SECONDS) -> Settings:
        """Resolve a target. Raise UnreachableError (unsupported) if the configuration cannot be read."""
        host = target.address or target.name
        if self._ssh is None:
            return _by_paramiko(target, host)
        with self._lock:  # the first of many like it asks; the others find the answer
            shape = self._shape(target.ssh_args)
            alike = shape.of(host)
            key = (target.ssh_args, target.port, target.user, target.key_file, alike)
            found = self._known.get(key) if alike is not None else None
            if found is None and alike is not None:
                found = self._known[key] = self._ask(target, host, seconds)
                return found
        if found is None:
            return self._ask(target, host, seconds)
        renamed = found.host.lower() != found.name.lower()
        return replace(found, name=host, host=found.host if renamed else host)

    def _shape(self, ssh_args: tuple[str, ...]) -> Shape:
        files = config_files(ssh_args)
        if files not in self._shapes:
            self._shapes[files] = Shape.read(files)
        shape = self._shapes[files]
        return shape if not any("%" in word for word in ssh_args) else Shape((), single=True)

    def _ask(self, target: Target, host: str, seconds: float) -> Settings:
        command = [self._ssh or "ssh", "-G", *arguments(target), "--", host]
        try:
            done = subprocess.run(command, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            raise UnreachableError(
                "deadline", f"`ssh -G {host}` did not answer: look at `Match exec` in the OpenSSH configuration"
            ) from None
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
            raise UnreachableError(
                "unsupported", f"`ssh -G {plain_text.plain(host)}` fails: {plain_text.plain(lines[0], 200)}"
            )
        return _settings(text, host)


def arguments(target: Target) -> list[str]:
    """Return the options for `ssh` that correspond to a target's variables."""
    words = list(target.ssh_args)
    words += ["-p", str(target.port)] if target.port else []
    words += ["-l", target.user] if target.user else []
    words += ["-i", target.key_file] if target.key_file else []
    return words


def config_files(ssh_args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the configuration files that ssh reads with these arguments."""
    for number, word in enumerate(ssh_args):
        if word.startswith("-F"):
            given = word[2:] or "".join(ssh_args[number + 1 : number + 2])
            return () if given == "none" else (home(given),)
    return (home(USER), SYSTEM)


def _settings(text: str, host: str) -> Settings:
    told: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        keyword, _, value = line.partition(" ")
        told[keyword.lower()] = (*told.get(keyword.lower(), ()), value)
    port = told.get("port", ("22",))[0]
    return Settings(
        host, told.get("hostname", (host,))[0], plain_text.whole(port) or 22, told.get("user", ("",))[0], told
    )


@dataclass(frozen=True)
class Shape:
    """Groups hosts with equal settings: those to which the same `Host` lines apply.

    `single`: settings may differ for each host (Match, tokens, canonical names).
    """

    patterns: tuple[tuple[str, ...], ...]
    single: bool = False

    @staticmethod
    def read(files: tuple[str, ...]) -> Shape:
        patterns, single = [], False
        for keyword, words in (line for file in files for line in _lines(file, 0)):
            if keyword == "host" and words != ["*"]:
                patterns.append(tuple(words))
            else:
                single = single or _depends_on_the_host(keyword, words)
        return Shape(tuple(patterns), single)

    def of(self, host: str) -> tuple[bool, ...] | None:
        """Return which `Host` lines apply, or None if this host must be asked separately."""
        return None if self.single else tuple(applies(words, host) for words in self.patterns)


def _depends_on_the_host(keyword: str, words: list[str]) -> bool:
    if keyword == "match":
        return [word.lower() for word in words] != ["all"]
    return keyword.startswith("canonical") or any("%" in word or "$" in word for word in words)


def applies(words: Iterable[str], host: str) -> bool:
    """Apply OpenSSH's rule for a pattern list: any match, but no match with `!`."""
    matching = [word for word in words if fnmatchcase(host.lower(), word.removeprefix("!").lower())]
    return bool(matching) and not any(word.startswith("!") for word in matching)


def _lines(file: str, depth: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the settings in a file and in those that it includes, as (keyword, words)."""
    try:
        lines = Path(file).read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        keyword, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if not keyword or keyword.startswith("#"):
            continue
        if keyword.lower() == "include" and depth < 16:
            folder = Path("/etc/ssh" if file.startswith("/etc/") else home("~/.ssh"))
            for pattern in _split(rest):
                for each in sorted(glob.glob(str(folder / home(pattern)))):  # noqa: PTH207  (absolute patterns too)
                    yield from _lines(each, depth + 1)
        yield keyword.lower(), list(_split(rest))


def _by_paramiko(target: Target, host: str) -> Settings:
    """Resolve without an OpenSSH client, by paramiko's reading of the user's configuration."""
    import paramiko

    told: dict[str, tuple[str, ...]] = {
        "identityfile": tuple(f"~/.ssh/{name}" for name in ("id_ed25519", "id_ecdsa", "id_rsa")),
        "userknownhostsfile": ("~/.ssh/known_hosts ~/.ssh/known_hosts2",),
        "globalknownhostsfile": ("/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",),
    }
    for file in reversed(config_files(target.ssh_args)):
        try:
            found = paramiko.SSHConfig.from_path(file).lookup(host)
        except OSError:
            continue
        except Exception as problem:  # noqa: BLE001  (paramiko raises several kinds, some of them internal)
            raise UnreachableError("unsupported", f"{file}: {plain_text.plain(problem, 200)}") from None
        told.update({key: tuple(value) if isinstance(value, list) else (value,) for key, value in found.items()})
    if target.key_file:
        told["identityfile"] = (target.key_file,)
    name = told.get("hostname", (host,))[0]
    port = target.port or plain_text.whole(told.get("port", ("22",))[0]) or 22
    return Settings(host, name, port, target.user or told.get("user", (getpass.getuser(),))[0], told)
