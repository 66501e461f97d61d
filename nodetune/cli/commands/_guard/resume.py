"""`nodetune guard resume`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune.api.model import HostResult
from nodetune.audit.selection import Selection
from nodetune.cli import as_typed, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _run
from nodetune.cli.commands._guard import _work
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.guard.deploy import cluster
from nodetune.guard.deploy import document as guard_document
from nodetune.guard.deploy import resume as decisions
from nodetune.guard.deploy.resume import BACK, MAY, STAYS, Drained, Fate
from nodetune.guard.node import drain
from nodetune.guard.node.scontrol import Node, ScontrolError, Slurm
from nodetune.hosts.target import ConnectionOptions
from nodetune.report.text import guard


@click.command("resume")
@click.argument("nodes", nargs=-1)
@cli_options.hosts
@cli_options.judging
@click.option("--dry-run", is_flag=True, help="Show which nodes would be resumed; change nothing.")
@cli_options.printed_format
@verbosity.progress_option
def command(
    nodes: tuple[str, ...],
    profiles: tuple[str, ...],
    site: tuple[Path, ...],
    dry_run: bool,
    output_format: str,
    **options: Any,
) -> int:
    """Resume drained nodes that pass their checks again.

    \b
    nodetune guard resume -b                 all nodes that the guard drained
    nodetune guard resume -b 'gpu[001-016]'  only these nodes
    nodetune guard resume -b -i prod         connect as the inventory specifies

    Only drains that the guard recorded on the node, with the same reason and time, are considered. All others stay.
    The policy installed on a node applies, as before a job; --profile and --site apply only to nodes without a policy.
    Exit code: 0 all resumed, 1 some fail their checks, 2 usage, 3 not reached or unknown.
    """
    settings.announce()
    reach, there = cli_options.reach(options), cluster.here()
    choice = cli_options.choice(profiles, site)
    drained = {node.name: node for node in _work.nodes_of(there, nodes) if drain.claimed(node)}
    found = []
    for looked, fate in _judged(drained, reach, choice):
        if isinstance(looked, Drained) and fate.state == MAY and not dry_run:
            found.append(_resumed(there, looked, fate))
        else:
            found.append(fate)
        if output_format == "text":
            guard.print_fate(sys.stdout, found[-1], as_typed.judged(choice))
    if output_format == "json":
        click.echo(guard_document.resume(found, dry_run), nl=False)
    elif not found:
        click.echo("no node is drained by the guard")
    elif dry_run:
        guard.print_resumable(sys.stdout, found)
    return max((fate.code for fate in found), default=OK)


def _judged(
    drained: Mapping[str, Node], reach: ConnectionOptions, choice: Selection
) -> list[tuple[Drained | Fate, Fate]]:
    """Decide about the drains, and judge the nodes whose drain is the guard's."""
    if not drained:
        return []
    judging = decisions.Judging(choice.profiles, choice.site)
    probed = _probed(drained, reach, judging)
    looked = {name: decisions.look(node, probed.get(name)) for name, node in sorted(drained.items())}
    besides = decisions.needed(looked.values()) - judging.facts()
    if besides:  # a site's own checks, which this machine does not know
        ours = {name: drained[name] for name, each in looked.items() if isinstance(each, Drained)}
        probed |= _probed(ours, reach, replace(judging, besides=besides))
    return [
        (each, decisions.decide(each, probed[name]) if isinstance(each, Drained) else each)
        for name, each in looked.items()
    ]


def _probed(nodes: Mapping[str, Node], reach: ConnectionOptions, judging: Selection) -> dict[str, HostResult]:
    targets = cluster.targets(reach, nodes)
    return {each.host: each for each in _run.with_facts(targets, judging, reach)} if targets else {}


def _resumed(there: Slurm, drained: Drained, fate: Fate) -> Fate:
    """Look once more: somebody may have given it another reason while it was probed."""
    try:
        if not drain.ours(there.node(fate.name), drained.notes):
            return replace(fate, state=STAYS, why="its drain reason has just changed")
        there.resume(fate.name)
    except ScontrolError as problem:
        return replace(fate, state=STAYS, why=str(problem), code=INCOMPLETE)
    return replace(fate, state=BACK)
