"""`nodetune slurm resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune import show
from nodetune.commands import _options, _run, _slurm
from nodetune.guard import drains
from nodetune.guard.slurm import Node, Refused, Slurm
from nodetune.model import HostResult
from nodetune.outcome import FINDINGS, INCOMPLETE, OK


@click.command("resume")
@click.argument("nodes", nargs=-1)
@_options.hosts
@_options.judging
@click.option("--dry-run", is_flag=True, help="Say which nodes would come back; change nothing.")
def resume(nodes: tuple[str, ...], profiles: tuple[str, ...], site: Path | None, dry_run: bool, **options: Any) -> int:
    """Bring back nodes that the guard drained and whose gating checks pass now.

    \b
    nodetune slurm resume -b                 all that the guard drained
    nodetune slurm resume -b 'gpu[001-016]'  of these
    nodetune slurm resume -b -i prod         reach them as the inventory says

    A drain counts as the guard's when the node itself has the note of it: this reason, at this time. All others stay.
    Exit code: 0 all of them are back, 1 some fail their checks, 2 usage, 3 not reached or not known.
    """
    reach, there = _options.reach(options), _slurm.here()
    chosen = _options.choice(profiles, site)
    drained = {node.name: node for node in _slurm.nodes(there, nodes) if _may_be_ours(node)}
    if not drained:
        click.echo("no node is drained by the guard")
        return OK
    targets = _slurm.targets(reach, drained)
    guarded = _slurm.Guarded(chosen.profiles, chosen.site)
    code, found = OK, {each.host: each for each in _run.with_facts(targets, guarded, reach)} if targets else {}
    for name, node in sorted(drained.items()):
        said, its_code = _one(there, node, found.get(name), dry_run)
        click.echo(f"{name}: {said}")
        code = max(code, its_code)
    return code


def _may_be_ours(node: Node) -> bool:
    return "DRAIN" in node.state and node.reason.startswith(drains.PREFIX)


def _one(there: Slurm, node: Node, result: HostResult | None, dry_run: bool) -> tuple[str, int]:
    """What became of one node, and the exit code that this asks for."""
    if result is None:
        return "stays drained: it is not in the inventory", INCOMPLETE
    if result.facts is None:
        return f"stays drained: not reached: {result.state}: {result.message}", INCOMPLETE
    notes = _slurm.notes(result.facts)
    if not drains.ours(node, notes):
        return f"stays drained: the node has no note of this drain ({show.plain(node.reason, 80)})", OK
    blamed = {str(name) for each in notes if each.get("reason") == node.reason for name in each.get("checks") or ()}
    why, code = _not_yet(result, blamed)
    if why:
        return f"stays drained: {why}", code
    if not node.drained:
        return f"stays as it is: {node.state}", FINDINGS
    if dry_run:
        return "would be resumed: its gating checks pass", OK
    return _resumed(there, node, notes)


def _not_yet(result: HostResult, blamed: set[str]) -> tuple[str, int]:
    """Why the node must not take jobs yet, and the exit code; empty where it may."""
    gating = [found for found in result.findings if found.gates or found.check in blamed]
    failing = [found for found in gating if found.status == "fail"]
    if failing:
        first = failing[0]
        more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
        return f"{first.check}: {first.observed}{more}; next: nodetune explain {first.check}", FINDINGS
    unknown = [found for found in gating if found.status == "unknown"]
    if unknown:
        return f"{unknown[0].check} is not known: {unknown[0].reason}", INCOMPLETE
    judged = {found.check for found in gating if found.status in ("pass", "waived")}
    if blamed - judged:
        return f"it was drained for {', '.join(sorted(blamed - judged))}, which this profile does not judge", INCOMPLETE
    return "", OK


def _resumed(there: Slurm, node: Node, notes: list[Any]) -> tuple[str, int]:
    """Look once more: somebody may have given it another reason while it was probed."""
    try:
        if not drains.ours(there.node(node.name), notes):
            return "stays drained: somebody changed its reason just now", OK
        there.resume(node.name)
    except Refused as problem:
        return f"stays drained: {problem}", INCOMPLETE
    return "back in service: its gating checks pass", OK
