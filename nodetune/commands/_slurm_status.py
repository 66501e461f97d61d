"""`nodetune slurm status`."""

from __future__ import annotations

import re
import sys
import time
from typing import Any

import click

from nodetune import show, workflow
from nodetune.commands import _options, _slurm
from nodetune.guard import drains
from nodetune.guard.slurm import Node
from nodetune.model import HostFacts, HostResult
from nodetune.outcome import INCOMPLETE, OK

HEADINGS = ("node", "slurm", "guard", "last run", "blind", "drain")
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (0, "s"))


@click.command("status")
@click.argument("nodes", nargs=-1)
@_options.hosts
def status(nodes: tuple[str, ...], **options: Any) -> int:
    """Show how nodes are guarded: mode, last run, how often blind, and whose drains there are.

    \b
    nodetune slurm status                    all nodes, reached by their names
    nodetune slurm status 'gpu[001-016]'     these
    nodetune slurm status -i prod            as the inventory says

    Exit code: 0, or 3 where a node was not reached.
    """
    reach, there = _options.reach(options), _slurm.here()
    known = {node.name: node for node in _slurm.nodes(there, nodes)}
    targets = _slurm.targets(reach, known)
    results = {each.host: each for each in workflow.probe_hosts(targets, _slurm.Left(), reach)} if targets else {}
    rows = [_row(node, results.get(name)) for name, node in sorted(known.items())]
    _print([HEADINGS, *rows])
    return OK if all(name in results and results[name].facts for name in known) else INCOMPLETE


def _row(node: Node, result: HostResult | None) -> tuple[str, ...]:
    facts = result.facts if result else None
    if facts is None:
        why = f"{result.state}: {result.message}" if result else "not in the inventory"
        return node.name, node.state, "?", "?", "?", f"not reached: {why}"
    policy = _slurm.data(facts, _slurm.POLICY)
    guard = f"{policy.get('mode')}, act {policy.get('act')}" if policy else "not installed"
    return node.name, node.state, show.plain(guard, 40), _last_run(facts), _blind(facts), _drain(node, facts)


def _last_run(facts: HostFacts) -> str:
    words = _slurm.text(facts, _slurm.HEARTBEAT).split(None, 2)
    if len(words) != 3 or not re.fullmatch(r"[0-9]{1,12}", words[0]):
        return "never"
    return f"{_age(time.time() - int(words[0]))} ago: {show.plain(words[2], 30)}"


def _age(seconds: float) -> str:
    size, unit = next(each for each in UNITS if seconds >= each[0] or not each[0])
    return f"{max(0, int(seconds // (size or 1)))} {unit}"


def _blind(facts: HostFacts) -> str:
    found = re.match(r"[0-9]{1,9}\b", _slurm.text(facts, _slurm.BLIND))
    return found[0] if found else "0"


def _drain(node: Node, facts: HostFacts) -> str:
    if not node.out_of_service:
        return "-"
    ours = drains.ours(node, _slurm.notes(facts))
    return f"{'ours' if ours else 'not ours'}: {show.plain(node.reason or 'no reason', 120)}"


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADINGS))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{line.rstrip()}\n")
