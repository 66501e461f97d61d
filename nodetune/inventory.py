"""Ansible inventories and node sets → the hosts to reach, with their connection variables. The only reader of Ansible's."""

from __future__ import annotations

import os
import re
import shlex
import stat
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from nodetune import hosts, inventoryscript, paths, show
from nodetune.hosts import BadInventory
from nodetune.transport import Target, local

__all__ = ["BadInventory", "targets"]

_HOST = re.compile(r"(?:([^@\s]+)@)?(\[[^\[\]\s]+\]|[^:\[\]\s@]+|[0-9A-Fa-f:.]+(?:%\w+)?)(?::(\d{1,5}))?")


def targets(spec: str | None, limit: str | None = None) -> list[Target]:
    """The hosts that `--inventory` and `--limit` mean. Raises BadInventory.

    `spec` is a name under inventories/, a path, or host names and node sets; without it, this host.
    """
    groups: dict[str, list[str]] = {}
    if spec is None:
        found = [this_host()]
    else:
        path = _path(spec)
        if path:
            found, groups = _by_ansible(path)
        else:
            found = _named(spec)
    if limit is None:
        return found
    kept = set(hosts.pick(limit, [target.name for target in found], groups))
    return [target for target in found if target.name in kept]


def this_host() -> Target:
    return Target(local.name(), connection="local", python=sys.executable or "python3")


def _path(spec: str) -> Path | None:
    """The inventory file or folder that `spec` names; None when it names hosts."""
    if not spec.strip():
        raise BadInventory("--inventory is empty: give a name, a path or host names")
    given = Path(spec)
    if given.exists() and "," not in spec:
        return given
    if re.fullmatch(r"[\w.-]+", spec):
        for folder in _folders():
            for name in (spec, f"{spec}.yml", f"{spec}.yaml", f"{spec}.ini"):
                if (folder / name).exists():
                    return folder / name
    if "/" in spec or re.search(r"\.(ya?ml|ini|json|toml)$", spec):
        known = sorted(
            {each.name for folder in _folders() for each in folder.iterdir() if not each.name.startswith(".")}
        )
        raise BadInventory(
            f"no inventory {spec!r} here{': those in inventories/ are ' + ', '.join(known) if known else ''}"
        )
    return None


def _folders() -> list[Path]:
    folders = [Path("inventories")]
    with suppress(FileNotFoundError):
        folders.append(paths.shared("inventories"))
    return [folder for folder in folders if folder.is_dir()]


def _named(spec: str) -> list[Target]:
    """Hosts by name: `[user@]host[:port]`, commas, node sets."""
    found: dict[str, Target] = {}
    for text in hosts.expand(spec):
        parts = _HOST.fullmatch(text)
        if parts is None or parts[2].startswith("-") or int(parts[3] or 1) > 65535:
            raise BadInventory(f"{text!r} is no host: write [user@]host[:port], or the path of an inventory")
        name = parts[2].strip("[]")
        if text == "localhost":
            target = replace(this_host(), name=text)
        else:
            target = Target(name, address=name, port=int(parts[3]) if parts[3] else None, user=parts[1])
        if name in found:
            target = replace(target, name=text)
        found[target.name] = target
    return list(found.values())


def _by_ansible(path: Path) -> tuple[list[Target], dict[str, list[str]]]:
    """Every host of an Ansible inventory, and its groups."""
    with _quietly() as said:
        reader = _Reader(path, said)
        found = [reader.target(host) for host in reader.hosts()]
        return found, reader.groups()


@contextmanager
def _quietly() -> Iterator[list[str]]:
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
            self._inventory = _strict_manager(said)(loader=self._loader, sources=[str(path.absolute())])
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


def _strict_manager(said: list[str]) -> Any:
    """Ansible's InventoryManager, made to fail where it would go on without a part of the inventory."""
    from ansible import constants
    from ansible.inventory.manager import InventoryManager

    class Strict(InventoryManager):  # type: ignore[misc]
        def parse_source(self, source: str, cache: bool = False) -> bool:
            """One file, or a folder of them, by the plugins that a file of its kind is meant for."""
            path, enabled = Path(source), constants.INVENTORY_ENABLED
            if path.is_dir():
                return bool(super().parse_source(source, cache=cache))
            heard = len(said)
            constants.INVENTORY_ENABLED = [name for name in enabled if name.rpartition(".")[2] not in _unfit(path)]
            try:
                with inventoryscript.watched(_short(path)) as programs:
                    parsed = bool(super().parse_source(source, cache=cache))
            finally:
                constants.INVENTORY_ENABLED = enabled
            if not parsed:
                raise BadInventory(f"{_short(path)}{_why(path, said[heard:], programs)}")
            return parsed

    return Strict


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _unfit(path: Path) -> tuple[str, ...]:
    """Plugins that would make something of a file that is not meant for them: INI of broken YAML or of a script's source."""
    if path.suffix in (".yml", ".yaml", ".json"):
        return ("ini", "host_list", "advanced_host_list", "script")
    try:
        with path.open("rb") as stream:
            is_script = stream.read(2) == b"#!" and os.fstat(stream.fileno()).st_mode & stat.S_IXUSR
    except OSError as problem:
        raise BadInventory(f"{_short(path)}: {(problem.strerror or str(problem)).lower()}") from None
    return (
        ("ini", "yaml", "toml", "auto", "host_list", "advanced_host_list")
        if is_script
        else ("host_list", "advanced_host_list")
    )


def _reason(said: list[str]) -> str:
    """Why no plugin could read a file, from what Ansible said meanwhile."""
    failures = [" ".join(text.split()) for text in said if "ailed to parse" in text]
    telling = [text for text in failures if "not YAML inventory" not in text] or failures
    if not telling:
        return "Ansible cannot read it as an inventory: try ansible-inventory --list -i on it"
    found = re.search(r"with '?(\w+)'? (?:inventory )?plugin:? (.*)", telling[-1])
    text = found[2] if found else telling[-1]
    text = re.split(r" Failed to parse inventory with| Origin: | <<< | The error appears| Syntax Error while", text)[0]
    text = text.removeprefix("Failed to parse inventory: ")
    return show.plain(text, 300)


def _why(path: Path, said: list[str], programs: inventoryscript.Watch) -> str:
    """Where and why no plugin could read a file, as what follows its name."""
    if programs.given_up:
        return f": {programs.given_up}"
    reason = _reason(said)
    number, text = _open_bracket(path) if "to unpack" in reason else (0, "")
    if number:
        return f" line {number}: {show.plain(text, 60)!r} lacks a bracket: write [group], or host[01:16]"
    if programs.last_words and programs.last_words not in reason:
        reason = f"{reason.rstrip('.')}; it said: {programs.last_words}"
    return f"{_line(path)}: {reason}"


def _open_bracket(path: Path) -> tuple[int, str]:
    """Line and text of the first section or host of an INI inventory that has a bracket too few or too many."""
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        text = line.strip() if line.lstrip().startswith("[") else f"{line} ".split(" ")[0]
        if text[:1] not in ("#", ";") and text.count("[") != text.count("]"):
            return number, text
    return 0, ""


def _line(path: Path) -> str:
    """Where the YAML of a file breaks, if it does."""
    import yaml

    if path.suffix not in (".yml", ".yaml"):
        return ""
    try:
        yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        return f" line {problem.problem_mark.line + 1}" if problem.problem_mark else ""
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    return ""
