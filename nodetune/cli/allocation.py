"""The options of `--transport slurm`, which only that transport imports."""

import click

from nodetune.cli import settings
from nodetune.foundation import nodeset
from nodetune.hosts import patterns
from nodetune.remote.slurm import sinfo


def nodes(inventory: str | None, limit: str | None) -> tuple[str | None, str | None]:
    """Return inventory and limit: the nodes of the allocation if no inventory is typed, or all that match the limit.

    Raise click.UsageError, sinfo.SlurmError and patterns.InventoryError.
    """
    sinfo.check()
    context, inside = click.get_current_context(silent=True), sinfo.allocated()
    named = None if inside and context and settings.is_implicit(context, "inventory") else inventory
    if named is not None:
        return named, limit
    every = inside or (sinfo.every() if limit else [])
    if not every:
        raise click.UsageError(
            "--transport slurm: not in an allocation: name the nodes with -i or -l, or use salloc or sbatch"
        )
    return nodeset.fold(patterns.pick(limit, every, {}) if limit else every), None
