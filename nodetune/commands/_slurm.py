"""What the commands about guarded nodes share: asking Slurm, and reading what the guard left on its nodes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodetune import nodeset
from nodetune.guard import drains, slurm
from nodetune.guard.slurm import Node, Slurm
from nodetune.model import HostFacts, Value
from nodetune.transport import Target
from nodetune.workflow import Choice, Reach

RUN, POLICY = "/run/nodetune/guard", "/etc/nodetune/guard.json"
HEARTBEAT, BLIND = f"{RUN}/heartbeat", f"{RUN}/blind"
NOTES = (f"{RUN}/{drains.NOTE}", f"{drains.KEPT}/{drains.NOTE}")


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
    except slurm.Refused as problem:
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


class Guarded(Choice):
    """The audit's checks, and what the guard left on the node."""

    def facts(self) -> set[str]:
        return super().facts() | left_behind()


class Left(Choice):
    """Only what the guard left on the node."""

    def facts(self) -> set[str]:
        return left_behind()


def left_behind() -> set[str]:
    return {f"file.{path}" for path in (HEARTBEAT, BLIND, POLICY, *NOTES)}


def text(facts: HostFacts, path: str) -> str:
    """A file of the node; empty where it is not there or cannot be read."""
    fact = facts.facts.get(f"file.{path}")
    return str(fact.value) if isinstance(fact, Value) else ""


def data(facts: HostFacts, path: str) -> Mapping[str, Any]:
    """A JSON object in a file of the node; empty where it is none. The node is not trusted."""
    try:
        found = json.loads(text(facts, path))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def notes(facts: HostFacts) -> list[Mapping[str, Any]]:
    """What the node knows of the guard's drains."""
    return [each for each in (data(facts, path) for path in NOTES) if each]
