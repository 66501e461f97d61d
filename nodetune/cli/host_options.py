"""Options that say which hosts a command works on and how it reaches them, and what they turn into."""

from __future__ import annotations

import getpass
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from nodetune.cli import renamed, settings, verbosity
from nodetune.hosts.target import ConnectionOptions, SessionOptions, Vault

F = TypeVar("F", bound=Callable[..., Any])

OLD_TRANSPORTS = {"ssh": "openssh"}
"""Transports of the previous release: on command lines, and in records of runs."""


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def complete(name: str) -> Callable[..., Any]:
    """Return the function of this name in completion.py, which only a press of Tab needs."""

    def found(*given: Any) -> Any:
        from nodetune.cli import completion

        return getattr(completion, name)(*given)

    return found


def _transport(*slurm: str) -> Callable[[F], F]:
    return settings.option(
        "--transport",
        type=renamed.Choice(["auto", "paramiko", "openssh", *slurm, "local"], was=OLD_TRANSPORTS),
        default="auto",
        show_default=True,
        help="How to reach hosts. auto uses paramiko, and OpenSSH where paramiko lacks a feature."
        + (" slurm uses srun; without -i, on all nodes of the allocation." if slurm else ""),
    )


def _inventory(folder: Path, given: str) -> str:
    """Return the inventory that a settings file in this folder means: one there, else what is typed."""
    endings = ("", ".yml", ".yaml", ".ini")
    there = [folder / given, *(folder / "inventories" / f"{given}{ending}" for ending in endings)]
    found = None if "," in given else next(filter(Path.exists, there), None)
    return str(found or (folder / given if "/" in given and "[" not in given else given))


def _vault_id(folder: Path, given: str) -> str:
    label, at, file = given.rpartition("@")
    return given if file.startswith("prompt") else f"{label}{at}{folder / file}"


_hosts = stack(
    settings.option(
        "-i",
        "--inventory",
        metavar="INV",
        locate=_inventory,
        shell_complete=complete("inventory"),
        help="Inventory: a name in inventories/, a path, or hosts such as gpu[001-128],login1. Default: this host.",
    ),
    click.option(
        "-l",
        "--limit",
        metavar="PATTERN",
        shell_complete=complete("limit"),
        help="Limit to these hosts: Ansible patterns or a node set.",
    ),
    click.option(
        "--failed-of",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Limit to the hosts that failed in this audit, apply or verify (--format json).",
    ),
    settings.option(
        "--forks", type=click.IntRange(1, 4096), default=64, show_default=True, help="Number of hosts in parallel."
    ),
    settings.option(
        "--timeout",
        type=click.FloatRange(1, 3600),
        default=40,
        show_default=True,
        metavar="SECONDS",
        help="Deadline for each host.",
    ),
    settings.option("-u", "--user", help="Log in as this user."),
    settings.option(
        "-b",
        "--become/--no-become",
        default=False,
        help="Become root with sudo (--no-become undoes a setting).",
    ),
    settings.option("-K", "--ask-become-pass", is_flag=True, help="Ask for the sudo password once. Default: sudo -n."),
    settings.option(
        "--private-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Log in with this SSH key."
    ),
    settings.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port of sshd."),
    settings.option(
        "--vault-id",
        multiple=True,
        metavar="LABEL@FILE",
        locate=_vault_id,
        help="Ansible Vault: a label with its password file, or LABEL@prompt. May be repeated.",
    ),
    settings.option(
        "--vault-password-file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Ansible Vault: the password file.",
    ),
    settings.option("--ask-vault-pass", is_flag=True, help="Ansible Vault: ask for the password."),
    click.option("--accept-new-host-keys", is_flag=True, help="Accept unknown host keys."),
    verbosity.options,
)

_to_nodes = _transport("slurm")
hosts = stack(_hosts, _transport())
hosts_or_nodes = stack(_hosts, _to_nodes, renamed.alias("--via", "--transport", values={"ssh": None, "slurm": "slurm"}))


def reach(options: dict[str, Any]) -> ConnectionOptions:
    """Turn the host options into ConnectionOptions and remove them from `options`. May ask for passwords."""
    _without_settings_for_hosts(options)
    settings.explain(options)
    path = options.pop("failed_of", None)
    only = _failed_of(path)
    if options["transport"] == "slurm":
        from nodetune.cli import allocation

        allocation.use(options)
    ask = options.pop("ask_become_pass")
    password = (
        _typed("sudo password", "-K", "use sudo without a password (-b), or ansible_become_password") if ask else None
    )
    return ConnectionOptions(
        inventory=options.pop("inventory"),
        limit=options.pop("limit"),
        forks=options.pop("forks"),
        transport=options.pop("transport"),
        options=SessionOptions(
            seconds=options.pop("timeout"), accept_new_host_keys=options.pop("accept_new_host_keys")
        ),
        become=options.pop("become") or ask,
        become_password=password,
        user=options.pop("user"),
        private_key=options.pop("private_key", None),
        port=options.pop("port", None),
        vault=_vault(
            tuple(options.pop("vault_id", ())),
            options.pop("vault_password_file", None),
            options.pop("ask_vault_pass", False),
        ),
        only=only,
        failed_of=str(path or ""),
    )


def _typed(what: str, option: str, instead: str) -> str:
    """Ask for a password, on the terminal or standard input. Raise click.UsageError where nobody gives one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", getpass.GetPassWarning)
            return str(click.prompt(what, hide_input=True, err=True))
    except click.Abort:
        if _has_terminal():
            raise
        raise click.UsageError(f"{option} asks for a password and needs a terminal: without one, {instead}") from None


def _has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        return True
    return sys.stdin.isatty()


def _failed_of(path: Path | None) -> frozenset[str] | None:
    """Return the hosts that failed in a saved result. End the command with 0 if none did."""
    if path is None:
        return None
    from nodetune.cli import failed_hosts as failed

    found = failed.hosts(path)
    if not found:
        verbosity.note(f"{path}: no host failed: nothing to do")
        raise click.exceptions.Exit(0)
    return found


def _vault(ids: tuple[str, ...], file: str | None, ask: bool) -> Vault:
    """Return what opens encrypted inventories. May ask for passwords."""
    labels = [(label or "default", where) for label, _, where in (each.rpartition("@") for each in ids)]
    files = [(label, where) for label, where in labels if not where.startswith("prompt")]
    asked = [label for label, where in labels if where.startswith("prompt")] + (["default"] if ask else [])
    way = "--ask-vault-pass" if ask else "--vault-id LABEL@prompt", "use --vault-password-file or --vault-id LABEL@FILE"
    return Vault(
        tuple(files) + ((("default", file),) if file else ()),
        tuple((label, _typed(f"vault password ({label})", *way)) for label in asked),
        (
            *(word for each in ids for word in ("--vault-id", each)),
            *(("--vault-password-file", file) if file else ()),
            *(("--ask-vault-pass",) if ask else ()),
        ),
    )


FOR_SSH = {"user": None, "ask_become_pass": False, "private_key": None, "port": None}
FOR_VAULT = {"vault_id": (), "vault_password_file": None, "ask_vault_pass": False}
FOR_HOSTS = {**FOR_SSH, **FOR_VAULT, "inventory": None, "transport": "auto", "become": False}
"""Options for connections → their defaults."""


def _without_settings_for_hosts(options: dict[str, Any]) -> None:
    """Ignore settings that what was typed leaves no room for: saved facts need no host, and srun no login."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    needless: Mapping[str, Any] = FOR_HOSTS if context.params.get("facts_path") else {}
    if not needless and options["transport"] == "slurm":
        needless = FOR_SSH
    if context.get_parameter_source("become") is ParameterSource.COMMANDLINE and not options["become"]:
        needless = {**needless, "ask_become_pass": False}
    options.update({name: default for name, default in needless.items() if settings.is_implicit(context, name)})
