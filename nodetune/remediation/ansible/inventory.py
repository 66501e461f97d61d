"""The inventory of one play: every host reached as nodetune itself reaches it, every value of it data and no template.

Hosts are called h0, h1 … there: a host's own name may hold anything, and Ansible reads ranges and ports into it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from nodetune.api.model import HostFacts
from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote import connect, local
from nodetune.remote.login import openssh
from nodetune.remote.login.ssh_config import Resolver

if TYPE_CHECKING:
    from nodetune.remote.kubernetes.fix_pod import HostPods

_KEEP = ("-o", "ControlMaster=auto", "-o", "ControlPersist=60s", "-o", "ServerAliveInterval=15")
"""One connection for all tasks; a host that dies is noticed after three unanswered questions. The user's own come first."""


PROMPT_SECONDS = 30
"""How long sudo may at least take to ask or to let us in: Ansible's 12 are few for a busy host with accounts from a directory.
Half of a host's own deadline where that is more: who gives slow hosts more time means sudo as well."""


OLDEST = (3, 8)
"""The oldest Python that every supported ansible-core runs its modules with."""

_PATH = re.compile(r"/[A-Za-z0-9_.+/-]{1,200}")


class _Name(str):
    """A key that is ours: written without a tag."""

    __slots__ = ()


_TEXT = "tag:yaml.org,2002:str"


class DataDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes strings, keys included, with the tag by which Ansible takes them for data."""

    def text(self, text: str) -> Any:
        """Represent a string so that it stays one.

        ansible-core 2.19 reads `!unsafe "0644"` as a number and `!unsafe "yes"` as a boolean. Such a text needs no tag:
        it has no character of a template.
        """
        is_text = self.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT
        return self.represent_scalar("!unsafe" if is_text else _TEXT, text, style='"')


DataDumper.add_representer(str, DataDumper.text)
DataDumper.add_representer(_Name, lambda dumper, name: dumper.represent_scalar(_TEXT, str(name)))


def inventory(aliases: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of the inventory: alias → variables, which are JSON data."""
    hosts = {_Name(alias): {_Name(name): value for name, value in of.items()} for alias, of in aliases.items()}
    return str(yaml.dump({_Name("all"): {_Name("hosts"): hosts}}, Dumper=DataDumper, sort_keys=False, width=1 << 20))


def check_data(value: Any) -> None:
    """Raise UnreachableError for text that Ansible cannot carry, such as half a surrogate pair."""
    try:
        yaml.dump(value, Dumper=DataDumper, allow_unicode=True).encode()
    except (UnicodeEncodeError, yaml.YAMLError) as problem:
        raise UnreachableError(
            "unsupported", f"a value for this host is not text: {plain_text.plain(problem, 200)}"
        ) from None


class PlayInventory:
    """Ansible's connection variables for targets."""

    def __init__(self, session_options: SessionOptions, seconds: float = 3600.0) -> None:
        self._options, self._seconds = session_options, seconds
        self._resolver = Resolver()

    @cached_property
    def _pods(self) -> HostPods:
        from nodetune.remote.kubernetes.fix_pod import HostPods  # only this transport needs it

        return HostPods(self._options.cluster, self._seconds, self._options.seconds)

    def close(self) -> None:
        """Remove what was made to reach the hosts."""
        if "_pods" in vars(self):
            self._pods.close()

    def reached(
        self, targets: Sequence[Target], variables: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, tuple[Target, dict[str, Any]]], dict[str, str]]:
        """Return alias → target and all its variables, and host name → why Ansible cannot reach it."""
        found, lost = {}, {}
        for number, target in enumerate(targets):
            given = dict(variables.get(target.name, {}))
            try:
                check_data(given)
                found[f"h{number}"] = target, {**given, **self.variables(target)}
            except UnreachableError as problem:
                lost[target.name] = problem.message
        return found, lost

    def variables(self, target: Target) -> dict[str, Any]:
        """Return the connection variables. Raise UnreachableError if Ansible cannot reach the host as nodetune does."""
        target.check()
        found = {**self._connection(target), "ansible_python_interpreter": _python(target)}
        if not (local.becomes_another(target) if target.connection == "local" else target.become):
            return {**found, "ansible_become": False}
        password = {"ansible_become_password": target.become_password} if target.become_password is not None else {}
        return {
            **found,
            "ansible_become": True,
            "ansible_become_user": target.become_user,
            "ansible_become_method": "nodetune_sudo",
            **password,
        }

    def _connection(self, target: Target) -> dict[str, Any]:
        if target.connection == "local":
            return {"ansible_connection": "local"}
        if target.connection == "kubernetes":
            return {"ansible_connection": "nodetune_pod", **self._pods.variables(target)}
        _check(target)
        told = {
            "ansible_connection": "nodetune_ssh",
            "ansible_host": target.address or target.name,
            "ansible_port": target.port,
            "ansible_user": target.user,
            "ansible_ssh_private_key_file": target.key_file,
            "ansible_password": target.password,
            "ansible_ssh_args": self._ssh_args(target),
            "ansible_ssh_timeout": int(max(PROMPT_SECONDS, self._options.seconds / 2)),
        }
        return {name: value for name, value in told.items() if value is not None}

    def _ssh_args(self, target: Target) -> str:
        """Return nodetune's own options for ssh, the user's, and the shared connection: the first of each counts."""
        own = openssh.own_options(target, self._resolver.resolve(target), self._options)
        return shlex.join([*own, *target.ssh_args, *_KEEP])


def _python(target: Target) -> str:
    """Return the interpreter for modules.

    If none is named, Ansible looks for one: a host's python3 may be too old and a newer one installed.
    """
    if target.python != "python3":
        return target.python
    return sys.executable if target.connection == "local" and sys.executable else "auto_silent"


def as_probed(target: Target, facts: HostFacts | None) -> Target:
    """Return the target with the interpreter that the probe ran with, where Ansible can use that one.

    A login may find a python3 that Ansible does not, such as a shim of pyenv on its PATH.
    """
    about = facts.about if facts else {}
    path, version = str(about.get("interpreter")), re.match(r"(\d{1,4})\.(\d{1,4})", str(about.get("python")))
    new = version and (int(version[1]), int(version[2])) >= OLDEST
    named = target.python != "python3" or target.connection in ("local", "kubernetes")  # a pod has a Python of its own
    return replace(target, python=path) if new and not named and _PATH.fullmatch(path) else target


def _check(target: Target) -> None:
    connect.ssh_only(target)
    if shutil.which("ssh") is None:
        raise UnreachableError("unsupported", "the OpenSSH client is not installed here: apt install openssh-client")


def login_command(target: Target) -> str:
    """Return the command with which a person logs in to the same host; empty for this machine and for a pod."""
    return "" if target.connection in ("local", "kubernetes") else openssh.login_command(target)


def secrets(targets: Sequence[Target]) -> tuple[str, ...]:
    """Return what must never be shown, longest first because one may contain another."""
    found = {word for target in targets for word in (target.password, target.become_password) if word}
    return tuple(sorted(found, key=len, reverse=True))
