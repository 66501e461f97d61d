"""The cluster as its own Slurm tells of it, and how its nodes are reached."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace

from nodetune import nodeset
from nodetune.guard import scontrol
from nodetune.guard.scontrol import Node, Slurm
from nodetune.transport import Target
from nodetune.workflow import Reach


class BadSlurm(ValueError):
    """Slurm cannot be asked here, or knows no such node; one line that says what to do."""


def here() -> Slurm:
    """Slurm by this machine's own scontrol. Raises BadSlurm."""
    tool = shutil.which("scontrol", path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin:/opt/slurm/bin")
    if tool is None:
        raise BadSlurm("scontrol is not here: run this on a machine of the cluster that has Slurm's commands")
    return Slurm(tool)


def nodes(there: Slurm, wanted: Iterable[str]) -> list[Node]:
    """These nodes as Slurm knows them (node sets), or all. Raises BadSlurm."""
    names = {name for text in wanted for name in _unfolded(text)}
    try:
        found = there.nodes()
    except scontrol.Refused as problem:
        raise BadSlurm(str(problem)) from None
    unknown = names - {node.name for node in found}
    if unknown:
        raise BadSlurm(f"Slurm knows no node {nodeset.fold(unknown)}")
    return [node for node in found if not names or node.name in names]


def _unfolded(text: str) -> list[str]:
    try:
        return nodeset.unfold(text)
    except ValueError as problem:
        raise BadSlurm(str(problem)) from None


def targets(reach: Reach, names: Iterable[str]) -> list[Target]:
    """How to reach these nodes: as the inventory says, else by their names. Raises BadInventory."""
    wanted = set(names)
    if reach.inventory is None:
        reach = replace(reach, inventory=",".join(sorted(wanted)))
    return [target for target in reach.targets() if target.name in wanted]
