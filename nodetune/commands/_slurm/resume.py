"""`nodetune slurm resume`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune.choice import Choice
from nodetune.commands import _options, _run
from nodetune.guard import drains
from nodetune.guard.scontrol import Node, Refused, Slurm
from nodetune.model import HostResult
from nodetune.outcome import INCOMPLETE, OK
from nodetune.report import slurm_data, slurm_text
from nodetune.slurm import cluster
from nodetune.slurm import resume as decisions
from nodetune.slurm.resume import BACK, MAY, STAYS, Drained, Fate
from nodetune.workflow import Reach


@click.command("resume")
@click.argument("nodes", nargs=-1)
@_options.hosts
@_options.judging
@click.option("--dry-run", is_flag=True, help="Say which nodes would come back; change nothing.")
@_options.output_format
def command(
    nodes: tuple[str, ...],
    profiles: tuple[str, ...],
    site: Path | None,
    dry_run: bool,
    output_format: str,
    **options: Any,
) -> int:
    """Bring back nodes that the guard drained and whose gating checks pass now.

    \b
    nodetune slurm resume -b                 all that the guard drained
    nodetune slurm resume -b 'gpu[001-016]'  of these
    nodetune slurm resume -b -i prod         reach them as the inventory says

    A drain counts as the guard's when the node itself has the note of it: this reason, at this time. All others stay.
    A node is judged by the policy that is installed on it, as before a job; --profile and --site count only where there is
    none.
    Exit code: 0 all of them are back, 1 some fail their checks, 2 usage, 3 not reached or not known.
    """
    reach, there = _options.reach(options), cluster.here()
    choice = _options.choice(profiles, site)
    drained = {node.name: node for node in cluster.nodes(there, nodes) if drains.claimed(node)}
    found = []
    for looked, fate in _judged(drained, reach, choice):
        if isinstance(looked, Drained) and fate.state == MAY and not dry_run:
            found.append(_resumed(there, looked, fate))
        else:
            found.append(fate)
        if output_format == "text":
            slurm_text.print_fate(sys.stdout, found[-1])
    if output_format == "json":
        click.echo(slurm_data.resume(found, dry_run), nl=False)
    elif not found:
        click.echo("no node is drained by the guard")
    return max((fate.code for fate in found), default=OK)


def _judged(drained: Mapping[str, Node], reach: Reach, choice: Choice) -> list[tuple[Drained | Fate, Fate]]:
    """Whose drains these are, and what the checks of those that are ours say now."""
    if not drained:
        return []
    judging = decisions.Judging(choice.profiles, choice.site)
    probed = _probed(drained, reach, judging)
    looked = {name: decisions.look(node, probed.get(name)) for name, node in sorted(drained.items())}
    besides = decisions.needed(looked.values()) - judging.facts()
    if besides:  # a site's own checks, which this machine does not know
        ours = [name for name, each in looked.items() if isinstance(each, Drained)]
        probed |= _probed(ours, reach, replace(judging, besides=besides))
    return [
        (each, decisions.decide(each, probed[name]) if isinstance(each, Drained) else each)
        for name, each in looked.items()
    ]


def _probed(names: Iterable[str], reach: Reach, judging: Choice) -> dict[str, HostResult]:
    targets = cluster.targets(reach, names)
    return {each.host: each for each in _run.with_facts(targets, judging, reach)} if targets else {}


def _resumed(there: Slurm, drained: Drained, fate: Fate) -> Fate:
    """Look once more: somebody may have given it another reason while it was probed."""
    try:
        if not drains.ours(there.node(fate.name), drained.notes):
            return replace(fate, state=STAYS, why="somebody changed its reason just now")
        there.resume(fate.name)
    except Refused as problem:
        return replace(fate, state=STAYS, why=str(problem), code=INCOMPLETE)
    return replace(fate, state=BACK)
