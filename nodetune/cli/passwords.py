"""Passwords: those that a command asks for, and those that open encrypted inventories."""

import getpass
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

import click

from nodetune.cli import settings
from nodetune.foundation import text
from nodetune.hosts.connection_options import Vault


def asked(what: str, option: str, instead: str) -> str:
    """Ask for a password, on the terminal or standard input. Raise click.UsageError where nobody gives one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", getpass.GetPassWarning)
            return str(click.prompt(what, hide_input=True, err=True))
    except click.Abort:
        if _has_terminal():
            raise
        raise click.UsageError(
            f"{option} prompts for a password and needs a terminal: without one, {instead}"
        ) from None


def _has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        return True
    return sys.stdin.isatty()


def _require_no_program(password_file: str | None, ids: Sequence[str]) -> None:
    """Raise SettingsError if a file of the current folder names a vault password file that is a program."""
    given = {"vault_password_file": [password_file or ""], "vault_id": ids}
    for name, files in given.items():
        for file in (each.rpartition("@")[2] for each in files):
            if os.access(file, os.X_OK) and (where := settings.named_by_project(name)):
                word = name.replace("_", "-")
                told = f"{where}: {word}: {text.plain(file)} is a program, which only a user may choose"
                raise settings.SettingsError(f"{told}: give --{word}, or set it in your own settings")


def vault(ids: tuple[str, ...], file: str | None, ask: bool) -> Vault:
    """Return what opens encrypted inventories. May ask for passwords. Raise settings.SettingsError."""
    _require_no_program(file, ids)
    labels = [(label or "default", where) for label, _, where in (each.rpartition("@") for each in ids)]
    files = [(label, where) for label, where in labels if not where.startswith("prompt")]
    wanted = [label for label, where in labels if where.startswith("prompt")] + (["default"] if ask else [])
    way = "--ask-vault-pass" if ask else "--vault-id LABEL@prompt", "use --vault-password-file or --vault-id LABEL@FILE"
    return Vault(
        tuple(files) + ((("default", file),) if file else ()),
        tuple((label, asked(f"vault password ({label})", *way)) for label in wanted),
        (
            *(word for each in ids for word in ("--vault-id", each)),
            *(("--vault-password-file", file) if file else ()),
            *(("--ask-vault-pass",) if ask else ()),
        ),
    )
