"""The options of `--transport slurm`, which only that transport imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nodetune.cli import settings
from nodetune.hosts import nodeset, patterns
from nodetune.remote.slurm import sinfo

if TYPE_CHECKING:
    from nodetune.cli.host_options import HostOptions

SSH_ONLY = (("user", "-u"), ("ask_become_pass", "-K"), ("private_key", "--private-key"), ("port", "--port"))


def nodes(options: HostOptions) -> tuple[str | None, str | None]:
    """Return inventory and limit: the nodes of the allocation if no inventory is typed, or all that match the limit.

    Raise click.UsageError, sinfo.SlurmError and patterns.InventoryError.
    """
    for name, typed in SSH_ONLY:
        if getattr(options, name):
            raise click.UsageError(f"{typed} is for SSH only: srun uses the user who runs nodetune")
    sinfo.check()
    context, inside = click.get_current_context(silent=True), sinfo.allocated()
    named = None if inside and context and settings.is_implicit(context, "inventory") else options.inventory
    if named is not None:
        return named, options.limit
    every = inside or (sinfo.every() if options.limit else [])
    if not every:
        raise click.UsageError(
            "--transport slurm: not in an allocation: name the nodes with -i or -l, or use salloc or sbatch"
        )
    return nodeset.fold(patterns.pick(options.limit, every, {}) if options.limit else every), None
