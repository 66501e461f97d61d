"""How the hosts of a run were reached, as its record has it: a rollback reaches them in the same way."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.inventory import selection

CLUSTER = ("context", "namespace", "image")
RECORDED = ("limit", "user", "become", "transport", "private_key", "port", "vault_id", *CLUSTER)
"""The options in a record that say how hosts are reached, by their names on the command line."""


def connection_record(connection: ConnectionOptions) -> dict[str, Any]:
    """Return these options, without passwords and with paths that are valid in any folder."""
    vault = connection.vault
    return {
        **{name: getattr(connection, name) for name in RECORDED if name not in ("vault_id", *CLUSTER)},
        "private_key": str(Path(connection.private_key).absolute()) if connection.private_key else None,
        "vault_id": [
            *(f"{label}@{Path(file).absolute()}" for label, file in vault.files),
            *(f"{label}@prompt" for label, _ in vault.passwords),
        ],
        **vars(connection.options.cluster),
    }


def login_record(connection: ConnectionOptions) -> dict[str, Any]:
    """Return all options for the way to hosts that a record keeps."""
    vault_words = connection.vault.typed
    return {
        "forks": connection.forks,
        "timeout": connection.options.seconds,
        "accept_new_host_keys": connection.options.accept_new_host_keys,
        "vault_password_file": dict(pairwise(vault_words)).get("--vault-password-file"),
        "ask_vault_pass": "--ask-vault-pass" in vault_words,
        **connection_record(connection),
    }


def lasting_inventory(inventory: str | None) -> str | None:
    """Make the path of an inventory absolute, so that a rollback from another folder finds it."""
    return str(Path(inventory).absolute()) if inventory and selection.is_there(inventory) else inventory
