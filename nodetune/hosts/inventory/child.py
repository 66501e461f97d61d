"""Read an inventory with Ansible's own classes and print it as JSON: a program of its own, started by programs.py.

Usage: python3 child.py PATH [--data | PROGRAM …], absolute paths; it runs no other program of the inventory, and with --data
neither plugins nor templates that it names. It imports nothing of nodetune, only Ansible. Each line of its answer is one
JSON object: `reading` names the next source, and the last line has the hosts or an error.
"""

import gc
import json
import os
import re
import shlex
import signal
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Say = Callable[[Mapping[str, Any]], None]

SSH_OPTIONS = (
    "host",
    "port",
    "remote_user",
    "private_key_file",
    "password",
    "ssh_args",
    "ssh_common_args",
    "ssh_extra_args",
)
OPTIONS = (("connection", "ssh", SSH_OPTIONS), ("become", "sudo", ("become_user", "become_pass")))

SECRETS = "NODETUNE_VAULT_SECRETS"  # names the pipe with what opens the vault, besides Ansible's own settings
YAML = (".yml", ".yaml", ".json")
OURS = ("ansible_connection", "ansible_python_interpreter", "ansible_become", "ansible_become_method")

DATA = "--data"
TEMPLATE = re.compile(r"\{[{%#]")
CHANGEABLE = re.compile(r"\{[{%#]|\$")
"""A template, or an environment variable in a path: its value may change although no file does."""

PLUGIN_SETTINGS = (
    "ANSIBLE_HOME",
    "DEFAULT_INVENTORY_PLUGIN_PATH",
    "DEFAULT_VARS_PLUGIN_PATH",
    "INVENTORY_ENABLED",
    "VARIABLE_PLUGINS_ENABLED",
)


class SourceError(Exception):
    """A source that cannot be read: its path, the reason, and what Ansible logged about it."""

    def __init__(self, source: str, reason: str = "", logged: Sequence[str] = ()) -> None:
        super().__init__(source)
        self.answer = {"source": source, "reason": reason, "logged": [*logged]}


def main(path: Path, programs: Sequence[str]) -> None:
    """Print the content of the inventory, or the error."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is for the process that waits for the answer to report
    say = _only_ours()
    warnings.simplefilter("ignore")
    gc.disable()  # this process ends soon, and half of what it would collect is imported code
    try:
        say(read(path, say, programs))
    except SourceError as problem:
        say(problem.answer)
    except Exception as problem:  # noqa: BLE001  (whatever Ansible or a plugin raises is an error of this inventory)
        say({"error": text_of(problem)})


def _only_ours() -> Say:
    """Return a function that writes to the real standard output; redirect what plugins print to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)

    def say(answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=stream, flush=True)

    return say


def text_of(problem: BaseException) -> str:
    """Return Ansible's message without its decoration."""
    return str(getattr(problem, "message", "") or problem).strip() or type(problem).__name__


def read(path: Path, say: Say, programs: Sequence[str]) -> dict[str, Any]:
    """Return hosts with their connection variables, groups, and whether the files alone determine them."""
    logged = _log()
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()  # finds the inventory plugins of installed collections
    loader = DataLoader()
    loader.set_basedir(str(path if path.is_dir() else path.parent))
    _unlock(loader)
    manager = _strict(logged, say, programs)(loader=loader, sources=[str(path)])
    say({"reading": ""})
    hosts = Hosts(manager, loader, DATA in programs)
    found = [hosts.variables(host) for host in manager.get_hosts("all")]
    groups = {str(name): [str(host.name) for host in group.get_hosts()] for name, group in manager.groups.items()}
    return {"hosts": found, "groups": groups, "fixed": manager.is_fixed and hosts.are_fixed and _has_own_plugins_only()}


def _log() -> list[str]:
    """Collect Ansible's output to explain an error."""
    from ansible.utils.display import Display

    logged: list[str] = []

    def keep(msg: str, *_args: Any, **_more: Any) -> None:
        logged.append(str(msg))

    Display().display = keep
    return logged


def _unlock(loader: Any) -> None:
    """Load the vault passwords that ansible.cfg, the environment or the command line names."""
    from ansible import constants
    from ansible.parsing import vault

    files = [name.rpartition("@")[::2] for name in constants.DEFAULT_VAULT_IDENTITY_LIST or ()]
    files += [("", constants.DEFAULT_VAULT_PASSWORD_FILE)] if constants.DEFAULT_VAULT_PASSWORD_FILE else []
    pipe = os.environ.pop(SECRETS, "")
    given = json.loads(os.read(int(pipe), 1 << 16)) if pipe else {"files": (), "passwords": ()}
    secrets = [(label, vault.VaultSecret(password.encode())) for label, password in given["passwords"]]
    for label, file in (*given["files"], *files):
        if not file.startswith("prompt"):
            secret = vault.get_file_vault_secret(filename=file, vault_id=label or "default", loader=loader)
            secret.load()
            secrets.append((label or "default", secret))
    loader.set_vault_secrets(secrets)
    if context := getattr(
        vault, "VaultSecretsContext", None
    ):  # from ansible-core 2.19 on, the secrets are the process's
        context.initialize(context(secrets))


def _strict(logged: list[str], say: Say, programs: Sequence[str]) -> Any:
    """Return an InventoryManager that fails where Ansible would continue without a part of the inventory."""
    from ansible.inventory.manager import InventoryManager

    class Strict(InventoryManager):  # type: ignore[misc]
        is_fixed = True
        unfit: tuple[str, ...] = ()

        def parse_source(self, source: str, cache: bool = False) -> bool:
            """Parse one file, or a folder of files."""
            if Path(source).is_dir():
                return bool(super().parse_source(source, cache=cache))
            if is_program(source) and source not in programs:
                raise SourceError(source, "it became a program while the inventory was read: try again")
            if DATA in programs and self._is_plugin_configuration(source):
                raise SourceError(source, "it names an inventory plugin, which may run programs")
            before, self.unfit = len(logged), _unfit(source)
            say({"reading": source})
            if not super().parse_source(source, cache=cache):
                raise SourceError(source, logged=logged[before:])
            self.is_fixed = self.is_fixed and not (is_program(source) or self._is_plugin_configuration(source))
            return True

        def _fetch_inventory_plugins(self) -> list[Any]:
            names = {each: str(getattr(each, "_load_name", "")) for each in super()._fetch_inventory_plugins()}
            return [each for each, name in names.items() if name.rpartition(".")[2] not in self.unfit]

        def _is_plugin_configuration(self, source: str) -> bool:
            """Return whether a YAML source only names the plugin that finds the hosts."""
            content = self._loader.load_from_file(source) if source.endswith(YAML) else {}
            return not isinstance(content, Mapping) or "plugin" in content

    return Strict


def _unfit(path: str) -> tuple[str, ...]:
    """Return plugins that would misread a file of another format: broken YAML or the source of a script as INI."""
    if path.endswith(YAML):
        return ("ini", "host_list", "advanced_host_list", "script")
    if is_program(path):
        return ("ini", "yaml", "toml", "auto", "host_list", "advanced_host_list")
    return ("script", "host_list", "advanced_host_list")


def is_program(path: str) -> bool:
    """Return whether a file is a script or a binary to run."""
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(4)
            return start.startswith((b"#!", b"\x7fELF")) and bool(os.fstat(stream.fileno()).st_mode & stat.S_IXUSR)
    except OSError as problem:
        raise SourceError(path, (problem.strerror or str(problem)).lower()) from None


def _has_own_plugins_only() -> bool:
    """Return whether Ansible uses only its own inventory and variable plugins."""
    from ansible import constants

    folders = (*constants.DEFAULT_INVENTORY_PLUGIN_PATH, *constants.DEFAULT_VARS_PLUGIN_PATH)
    origins = {constants.config.get_config_value_and_origin(name)[1] for name in PLUGIN_SETTINGS}
    return origins == {"default"} and not any(Path(folder).is_dir() for folder in folders)


class Hosts:
    """The connection variables of hosts: variables, environment and ansible.cfg in Ansible's own order."""

    def __init__(self, manager: Any, loader: Any, data: bool) -> None:
        from ansible import constants
        from ansible.plugins.loader import become_loader, connection_loader
        from ansible.vars.hostvars import HostVars
        from ansible.vars.manager import VariableManager

        connection_loader.get("ssh", class_only=True)  # this is what makes Ansible read a plugin's options
        become_loader.get("sudo", class_only=True)
        self._config, self._become = constants.config, bool(constants.DEFAULT_BECOME)
        self._names = {*OURS, *_variables_of_options(constants.config)}
        self._loader, self._data = loader, data
        self._variables = VariableManager(loader=loader, inventory=manager)
        HostVars(inventory=manager, variable_manager=self._variables, loader=loader)
        self.are_fixed = True

    def variables(self, host: Any) -> dict[str, Any]:
        """Return the connection variables of a host, or the reason why a variable has no value."""
        known = {"name": str(host.name), "ranks": [(str(g.name), g.depth, int(g.priority)) for g in host.get_groups()]}
        try:
            return {**known, **self._variables_of(host)}
        except Exception as problem:  # noqa: BLE001  (a template may raise anything, and it is this host's alone)
            self.are_fixed = False
            return {**known, "problem": text_of(problem)}

    def _variables_of(self, host: Any) -> dict[str, Any]:
        from ansible.module_utils.parsing.convert_bool import boolean

        given = self._given(host)
        options = dict(self._options(given))
        python = str(given.get("ansible_python_interpreter") or "python3")
        ssh_args = (options[name] for name in ("ssh_args", "ssh_common_args", "ssh_extra_args"))
        return {
            "address": options["host"] or str(host.name),
            "port": int(options["port"]) if options["port"] else None,
            "user": options["remote_user"],
            "key_file": os.path.expanduser(options["private_key_file"] or "") or None,  # noqa: PTH111
            "password": options["password"],
            "connection": str(given.get("ansible_connection") or "ssh").rpartition(".")[2],
            "ssh_args": [word for text in ssh_args for word in shlex.split(text or "")],
            "python": "python3" if python.startswith("auto") else python,
            "become": bool(boolean(given.get("ansible_become", self._become), strict=False)),
            "become_user": options["become_user"] or "root",
            "become_method": str(given.get("ansible_become_method") or "sudo"),
            "become_password": options["become_pass"],
        }

    def _given(self, host: Any) -> dict[str, Any]:
        """Return the templated connection variables of a host. Undefined values in other variables do not matter."""
        from ansible.template import Templar

        raw = self._variables.get_vars(host=host)
        templar, names = Templar(loader=self._loader, variables=raw), [name for name in raw if name in self._names]
        for name in (name for name in names if self._data and TEMPLATE.search(str(raw[name]))):
            raise ValueError(f"{name} is a template, which may run programs")
        given = {name: _templated(templar, name, raw[name]) for name in names}
        self.are_fixed = self.are_fixed and not any(CHANGEABLE.search(str(raw[name])) for name in names)
        return {**given, "inventory_hostname": host.name}

    def _options(self, variables: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
        for kind, plugin, names in OPTIONS:
            for name in names:
                value, origin = self._config.get_config_value_and_origin(
                    name, plugin_type=kind, plugin_name=plugin, variables=variables
                )  # the default ssh_args are for many small connections
                yield name, None if origin == "default" or value in (None, "") else f"{value}"


def _variables_of_options(config: Any) -> Iterator[str]:
    for kind, plugin, names in OPTIONS:
        known = config.get_configuration_definitions(kind, plugin)
        yield from (variable["name"] for name in names for variable in known[name].get("vars") or ())


def _templated(templar: Any, name: str, value: Any) -> Any:
    try:
        str(value)  # before ansible-core 2.19, only this decrypts
        return templar.template(value)
    except Exception as problem:
        raise ValueError(f"{name}: {text_of(problem)}") from problem


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file: its modules are not Ansible's to import
    main(Path(sys.argv[1]), sys.argv[2:])
