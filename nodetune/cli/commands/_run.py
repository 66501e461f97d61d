"""What the commands that look at hosts share: the hosts, and their results as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodetune.api.model import HostResult
from nodetune.audit import run
from nodetune.audit.selection import Selection
from nodetune.cli import verbosity
from nodetune.cli.terminal import Terminal
from nodetune.hosts import inventory as hosts_inventory
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.remote.selected_hosts import selected_hosts as hosts_of


def with_facts(targets: list[Target], choice: Selection, reach: ConnectionOptions) -> list[HostResult]:
    return run.with_facts(targets, choice, reach, Terminal())


def selected_hosts(reach: ConnectionOptions) -> list[Target]:
    return hosts_of(reach, verbosity.detail)


WAY = ("limit", "user", "become", "transport", "private_key", "port", "vault_id")
"""Options by which hosts are reached, as the record of a run has them."""


def way(reach: ConnectionOptions) -> dict[str, Any]:
    """Return how hosts are reached, for the rollback of a run: no password, and paths that hold in any folder."""
    found = {name: getattr(reach, name) for name in WAY if name != "vault_id"}
    key = str(Path(reach.private_key).absolute()) if reach.private_key else None
    files = [f"{label}@{Path(file).absolute()}" for label, file in reach.vault.files]
    return {
        **found,
        "private_key": key,
        "vault_id": [*files, *(f"{label}@prompt" for label, _ in reach.vault.passwords)],
    }


def lasting(inventory: str | None) -> str | None:
    """Make the path of an inventory absolute, so that a rollback from another folder finds it."""
    return str(Path(inventory).absolute()) if inventory and hosts_inventory.is_there(inventory) else inventory
