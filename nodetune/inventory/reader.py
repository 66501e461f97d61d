"""Ansible inventories → hosts with their connection variables, read by Ansible's own classes: the only user of them."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nodetune import show
from nodetune.hosts import BadInventory
from nodetune.inventory import strict
from nodetune.transport import Target


def read(path: Path) -> tuple[list[Target], dict[str, list[str]]]:
    """Every host of an Ansible inventory, and its groups. Raises BadInventory."""
    with quietly() as said:
        reader = _Reader(path, said)
        found = [reader.target(host) for host in reader.hosts()]
        return found, reader.groups()


@contextmanager
def quietly() -> Iterator[list[str]]:
    """Ansible prints warnings wherever it likes: here they are kept, to explain an error with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ansible.utils.display import Display

        display, said = Display(), list[str]()

        def keep(msg: str, *_args: Any, **_more: Any) -> None:
            said.append(str(msg))

        display.display = keep
        try:
            yield said
        finally:
            display.__dict__.pop("display", None)


class _Reader:
    """One inventory, read by Ansible's own classes."""

    def __init__(self, path: Path, said: list[str]) -> None:
        from ansible.errors import AnsibleError
        from ansible.parsing.dataloader import DataLoader
        from ansible.vars.hostvars import HostVars
        from ansible.vars.manager import VariableManager

        _know_collections()
        self._path = path
        self._error = AnsibleError
        self._loader = DataLoader()
        folder = path if path.is_dir() else path.parent
        self._loader.set_basedir(str(folder.absolute()))  # of "." Ansible keeps for good where that was at first
        try:
            self._unlock()
            self._inventory = strict.manager(said)(loader=self._loader, sources=[str(path.absolute())])
        except AnsibleError as problem:
            raise BadInventory(f"{path}: {_one_line(problem)}") from None
        self._variables = VariableManager(loader=self._loader, inventory=self._inventory)
        HostVars(inventory=self._inventory, variable_manager=self._variables, loader=self._loader)
        self._options = _Options()

    def _unlock(self) -> None:
        """Take the vault passwords that ansible.cfg or the environment names."""
        from ansible import constants
        from ansible.parsing.vault import get_file_vault_secret

        files = [name.rpartition("@")[::2] for name in constants.DEFAULT_VAULT_IDENTITY_LIST or ()]
        if constants.DEFAULT_VAULT_PASSWORD_FILE:
            files.append(("", constants.DEFAULT_VAULT_PASSWORD_FILE))
        secrets = []
        for label, file in files:
            if not file.startswith("prompt"):
                secret = get_file_vault_secret(filename=file, vault_id=label or "default", loader=self._loader)
                secret.load()
                secrets.append((label or "default", secret))
        self._loader.set_vault_secrets(secrets)
        _set_vault_context(secrets)

    def hosts(self) -> list[Any]:
        found = self._inventory.get_hosts("all")
        if not found:
            raise BadInventory(f"{self._path} lists no host: add some, or name them on the command line")
        for host in found:
            if show.plain(host.name) != host.name:
                raise BadInventory(
                    f"{self._path}: {show.plain(host.name, 60)!r} is no host name: is this file an inventory?"
                )
        return list(found)

    def groups(self) -> dict[str, list[str]]:
        return {name: [host.name for host in group.get_hosts()] for name, group in self._inventory.groups.items()}

    def target(self, host: Any) -> Target:
        """A host with its connection variables, templated."""
        try:
            return self._target(host)
        except (self._error, ValueError, TypeError) as problem:
            raise BadInventory(f"{self._path}: host {show.plain(host.name)}: {_one_line(problem)}") from None

    def _target(self, host: Any) -> Target:
        from ansible.template import Templar

        raw = self._variables.get_vars(host=host)
        templar = Templar(loader=self._loader, variables=raw)
        given = {
            name: templar.template(raw[name]) for name in raw if name.startswith("ansible_") and name not in _NOT_OURS
        }
        given["inventory_hostname"] = host.name
        connection = str(given.get("ansible_connection") or "ssh")
        told = self._options.of(given)
        port = told.text("port")
        python = str(given.get("ansible_python_interpreter") or "python3")
        return Target(
            name=str(host.name),
            address=told.text("host") or str(host.name),
            port=int(port) if port else None,
            user=told.text("remote_user"),
            key_file=_home(told.text("private_key_file")),
            password=told.text("password"),
            connection=connection.rpartition(".")[2],
            ssh_args=tuple(
                word
                for name in ("ssh_args", "ssh_common_args", "ssh_extra_args")
                for word in shlex.split(told.text(name) or "")
            ),
            python="python3" if python.startswith("auto") else python,
            become=_is_true(given.get("ansible_become", told.default_become)),
            become_user=told.text("become_user") or "root",
            become_method=str(given.get("ansible_become_method") or "sudo"),
            become_password=told.text("become_pass"),
            groups=tuple(
                sorted(str(group.name) for group in host.get_groups() if group.name not in ("all", "ungrouped"))
            ),
        )


@cache
def _know_collections() -> None:
    """Have Ansible find the inventory plugins of installed collections; once a process is all that it allows."""
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()


def _set_vault_context(secrets: list[Any]) -> None:
    """From ansible-core 2.19 on the secrets are the process's."""
    from ansible.parsing import vault

    context = getattr(vault, "VaultSecretsContext", None)
    if context is None:
        return
    current = context.current(optional=True)
    if current:
        current.secrets = secrets
    else:
        context.initialize(context(secrets))


_NOT_OURS = ("ansible_facts", "ansible_version", "ansible_playbook_python", "ansible_config_file")


def _is_true(value: Any) -> bool:
    from ansible.module_utils.parsing.convert_bool import boolean

    return bool(boolean(value, strict=False))


def _home(path: str | None) -> str | None:
    return str(Path(path).expanduser()) if path else None


def _one_line(problem: BaseException) -> str:
    """Ansible's message without its frame, quotation of the file, and advice to debug."""
    text = str(getattr(problem, "message", "") or problem).strip()
    if "decrypt" in text or "vault secret" in text.lower():
        return (
            "a variable is encrypted with Ansible Vault, and no password that is set opens it: set ANSIBLE_VAULT_PASSWORD_FILE,"
            " or vault_password_file in ansible.cfg"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return show.plain(" ".join(lines[:3]) or type(problem).__name__, 300)


@dataclass(frozen=True)
class _Told:
    """What Ansible's configuration, from whatever source, says for one host."""

    values: Mapping[str, Any]
    default_become: bool

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        return None if value in (None, "") else f"{value}"


class _Options:
    """The options of Ansible's ssh and sudo plugins: variables, environment and ansible.cfg in Ansible's own order."""

    PLUGINS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
        "ssh": (
            "connection",
            "ssh",
            (
                "host",
                "port",
                "remote_user",
                "private_key_file",
                "password",
                "ssh_args",
                "ssh_common_args",
                "ssh_extra_args",
            ),
        ),
        "sudo": ("become", "sudo", ("become_user", "become_pass")),
    }

    def __init__(self) -> None:
        from ansible import constants
        from ansible.plugins.loader import become_loader, connection_loader

        connection_loader.get("ssh", class_only=True)  # this is what makes Ansible read a plugin's options
        become_loader.get("sudo", class_only=True)
        self._config = constants.config
        self._become = bool(constants.DEFAULT_BECOME)

    def of(self, variables: Mapping[str, Any]) -> _Told:
        values: dict[str, Any] = {}
        for kind, plugin, names in self.PLUGINS.values():
            for name in names:
                value, origin = self._config.get_config_value_and_origin(
                    name, plugin_type=kind, plugin_name=plugin, variables=variables
                )
                values[name] = (
                    None if origin == "default" else value
                )  # the default ssh_args are for many small connections
        return _Told(values, self._become)
