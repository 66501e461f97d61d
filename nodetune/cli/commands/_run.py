"""What the commands that look at hosts share: the hosts, and their results as they come."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from nodetune.api.model import HostResult
from nodetune.audit import auditor, run
from nodetune.audit.selection import Selection
from nodetune.cli import progress
from nodetune.cli.connections import selected_hosts
from nodetune.facts.cache import FactCache
from nodetune.foundation import text
from nodetune.hosts import inventory as hosts_inventory
from nodetune.hosts.target import ConnectionOptions, Target


def audited(reach: ConnectionOptions, choice: Selection, cache: FactCache | None) -> list[HostResult]:
    """Audit hosts with progress. After Ctrl-C: what is known so far."""
    targets = selected_hosts(reach)
    found = _taken("audit", run.audit_hosts(targets, choice, reach, cache), targets)
    _tell_kept([each for each in found if each.state == "ok" and each.message], len(found))
    return found


def fact_cache(folder: Path, oldest: float, transport: str) -> FactCache:
    """Open the folder of --cache; make it where it is missing. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return FactCache(folder, oldest, "slurm" if transport == "slurm" else "ssh")


def probed(reach: ConnectionOptions, choice: Selection, each: Callable[[HostResult], HostResult]) -> list[HostResult]:
    """Return what `each` makes of the facts of every host, in the order of their names. Show progress."""
    targets = selected_hosts(reach)
    with closing(run.probe_hosts(targets, choice, reach)) as running:
        return _taken("facts", (each(result) for result in running), targets)


def with_facts(targets: list[Target], choice: Selection, reach: ConnectionOptions) -> list[HostResult]:
    """Audit hosts with progress; each result holds the facts that it was judged by."""
    return _taken("audit", run.audit_keeping_facts(targets, choice, reach), targets)


def _taken(phase: str, running: Generator[HostResult, None, None], targets: Sequence[Target]) -> list[HostResult]:
    """Take results as they come, with progress. Ctrl-C ends the run: what did not come is named as such."""
    kept: list[HostResult] = []
    try:
        with closing(running), closing(progress.counted(phase, running, len(targets))) as results:
            for result in results:
                kept.append(result)  # noqa: PERF402  (an interrupted extend need not keep what came before)
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: {len(kept)} of {text.count(len(targets), 'host')} answered", err=True)
        known = {result.host for result in kept}
        left = (target.name for target in targets if target.name not in known)
        kept += [HostResult(name, "interrupted", "the run was stopped before this host answered") for name in left]
    return auditor.by_name(kept)


def _tell_kept(kept: Sequence[HostResult], of: int) -> None:
    """Say that some hosts were not probed again, so that recent fixes do not show."""
    if kept:
        who = f"{kept[0].host} was" if of == 1 else f"{len(kept)} of {of} hosts were"
        click.echo(f"{who} not probed again: {kept[0].message} (from --cache; limit the age with --max-age)", err=True)


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
