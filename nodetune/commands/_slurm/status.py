"""`nodetune slurm status`."""

from __future__ import annotations

import sys
from typing import Any

import click

from nodetune import workflow
from nodetune.commands import _options
from nodetune.outcome import INCOMPLETE, OK
from nodetune.report import slurm_data, slurm_text
from nodetune.slurm import cluster, left
from nodetune.slurm import status as known


@click.command("status")
@click.argument("nodes", nargs=-1)
@_options.hosts
@_options.output_format
def command(nodes: tuple[str, ...], output_format: str, **options: Any) -> int:
    """Show how nodes are guarded: mode, last run, how often blind, and whose drains there are.

    \b
    nodetune slurm status                    all nodes, reached by their names
    nodetune slurm status 'gpu[001-016]'     these
    nodetune slurm status -i prod            as the inventory says

    Exit code: 0, or 3 where a node was not reached.
    """
    reach, there = _options.reach(options), cluster.here()
    of_slurm = {node.name: node for node in cluster.nodes(there, nodes)}
    targets = cluster.targets(reach, of_slurm)
    results = {each.host: each for each in workflow.probe_hosts(targets, left.Left(), reach)} if targets else {}
    found = [known.of(node, results.get(name)) for name, node in sorted(of_slurm.items())]
    if output_format == "json":
        click.echo(slurm_data.status(found), nl=False)
    else:
        slurm_text.print_status(sys.stdout, found)
    return OK if all(each.guard for each in found) else INCOMPLETE
