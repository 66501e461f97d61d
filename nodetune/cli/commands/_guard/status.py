"""`nodetune guard status`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from nodetune.audit import hosts as audit_hosts
from nodetune.cli import as_typed, latest
from nodetune.cli import options as cli_options
from nodetune.cli.commands._guard import _work
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.guard.deploy import cluster, node_state
from nodetune.guard.deploy import document as guard_document
from nodetune.guard.deploy import status as known
from nodetune.guard.deploy.status import Status
from nodetune.report.text import guard


@click.command("status")
@click.argument("nodes", nargs=-1)
@cli_options.hosts
@cli_options.printed_format
def command(nodes: tuple[str, ...], output_format: str, **options: Any) -> int:
    """Show guard mode, last run and drains of nodes.

    \b
    nodetune guard status                    all nodes, by their names
    nodetune guard status 'gpu[001-016]'     only these nodes
    nodetune guard status -i prod            connect as the inventory specifies

    Exit code: 0 done, 2 usage, 3 a node was not reached.
    """
    reach, there = cli_options.reach(options), cluster.here()
    of_slurm = {node.name: node for node in _work.nodes_of(there, nodes)}
    targets = cluster.targets(reach, of_slurm)
    results = (
        {each.host: each for each in audit_hosts.probe_hosts(targets, node_state.NodeState(), reach)} if targets else {}
    )
    found = [known.of(node, results.get(name)) for name, node in sorted(of_slurm.items())]
    if output_format == "json":
        click.echo(guard_document.status(found), nl=False)
    else:
        guard.print_status(sys.stdout, found, as_typed.text(reach))
    if not nodes:
        _record(as_typed.text(reach), found)
    return OK if all(each.guard for each in found) else INCOMPLETE


def _record(asked: str, found: Sequence[Status]) -> None:
    """Keep what the overview says about the guard."""
    guards = [each.guard for each in found if each.guard]
    modes = Counter(each.installed.get("mode") or "without a guard" for each in guards)
    drained = sum(each.ours for each in guards)
    told = {"nodes": len(found), "lost": len(found) - len(guards), "modes": modes, "drained": drained}
    latest.keep("guard status", asked, told)
