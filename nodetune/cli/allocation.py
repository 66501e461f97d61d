"""The options of `--transport slurm`, which only that transport imports."""

from __future__ import annotations

from typing import Any

import click

from nodetune.hosts import nodeset, patterns
from nodetune.remote.slurm import sinfo


def use(options: dict[str, Any]) -> None:
    """Use the nodes of the allocation if there is no inventory, or all nodes that match the limit.

    Raise click.UsageError, sinfo.SlurmError and patterns.InventoryError.
    """
    for name, typed in (("user", "-u"), ("ask_become_pass", "-K")):
        if options[name]:
            raise click.UsageError(f"{typed} is for SSH only: srun uses the user who runs nodetune")
    sinfo.check()
    if options["inventory"] is None:
        nodes = sinfo.allocated() or (sinfo.every() if options["limit"] else [])
        if not nodes:
            raise click.UsageError(
                "--transport slurm: not in an allocation: name the nodes with -i or -l, or use salloc or sbatch"
            )
        limit, options["limit"] = options["limit"], None
        options["inventory"] = nodeset.fold(patterns.pick(limit, nodes, {}) if limit else nodes)
