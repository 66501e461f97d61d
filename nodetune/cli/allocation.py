"""The options of `--transport slurm`, which only that transport imports."""

from __future__ import annotations

from typing import Any

import click

from nodetune.cli import settings
from nodetune.hosts import nodeset, patterns
from nodetune.remote.slurm import sinfo

SSH_ONLY = (("user", "-u"), ("ask_become_pass", "-K"), ("private_key", "--private-key"), ("port", "--port"))


def use(options: dict[str, Any]) -> None:
    """Use the nodes of the allocation if no inventory is typed, or all nodes that match the limit.

    Raise click.UsageError, sinfo.SlurmError and patterns.InventoryError.
    """
    for name, typed in SSH_ONLY:
        if options[name]:
            raise click.UsageError(f"{typed} is for SSH only: srun uses the user who runs nodetune")
    sinfo.check()
    context, inside = click.get_current_context(silent=True), sinfo.allocated()
    if inside and context and settings.is_implicit(context, "inventory"):
        options["inventory"] = None
    if options["inventory"] is None:
        nodes = inside or (sinfo.every() if options["limit"] else [])
        if not nodes:
            raise click.UsageError(
                "--transport slurm: not in an allocation: name the nodes with -i or -l, or use salloc or sbatch"
            )
        limit, options["limit"] = options["limit"], None
        options["inventory"] = nodeset.fold(patterns.pick(limit, nodes, {}) if limit else nodes)
