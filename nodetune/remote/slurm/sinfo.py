"""Slurm's nodes: which exist, which are available, and why the others are not."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nodetune.foundation import UserError, nodeset
from nodetune.foundation import text as plain_text
from nodetune.hosts.target import UnreachableError

GONE = ("down", "fail", "no_resp", "power", "reboot", "unk", "future")
CLOSED = ("drain", "inval", "block")
"""Prefixes of the states (sinfo %T) of nodes that run nothing, and of nodes that start nothing new."""

ASLEEP = tuple("*~#!%")
"""Suffixes of states without answer or power: https://slurm.schedmd.com/sinfo.html#SECTION_NODE-STATE-CODES"""


class SlurmError(UserError):
    """The reason why srun cannot be used: one line with the cause and the fix."""


def allocated() -> list[str]:
    """Return the nodes of the current allocation in Slurm's order; empty outside an allocation."""
    return nodeset.unfold(os.environ.get("SLURM_JOB_NODELIST", ""))


def every() -> list[str]:
    """Return all nodes in Slurm's order. Raise SlurmError."""
    check()
    try:
        return list(states())
    except UnreachableError as problem:
        raise SlurmError(problem.message) from None


def check() -> None:
    """Raise SlurmError if srun is not installed."""
    missing = [tool for tool in ("srun", "salloc", "sinfo") if shutil.which(tool) is None]
    if missing:
        raise SlurmError(f"--transport slurm: {', '.join(missing)} not found: run nodetune on a node of the cluster")


@dataclass(frozen=True)
class Node:
    """A node as sinfo reports it: `idle` CPUs, memory in MiB."""

    state: str
    reason: str
    idle: int
    cpus: int
    memory: int
    partitions: frozenset[str]
    default: bool

    @property
    def why_gone(self) -> str:
        """The reason why nothing can run there; empty if something can."""
        return self._words if self.state.endswith(ASLEEP) or self.state.startswith(GONE) else ""

    @property
    def why_closed(self) -> str:
        """The reason why no new job can start there; empty if one can."""
        return self.why_gone or (self._words if self.state.startswith(CLOSED) else "")

    @property
    def _words(self) -> str:
        return plain_text.plain(f"{self.state}{f' ({self.reason})' if self.reason not in ('', 'none') else ''}", 200)


def states() -> dict[str, Node]:
    """Return all nodes by name. Raise UnreachableError."""
    found: dict[str, Node] = {}
    for line in _sinfo().splitlines():
        fields = line.strip().split("|", 6)
        if len(fields) == 7:
            name, state, cpus, memory, partition, marked, reason = fields
            of_cpus = [_number(each) for each in cpus.split("/")]
            known = found.get(name)
            partitions = frozenset([partition]) | (known.partitions if known else frozenset())
            default = marked.endswith("*") or bool(known and known.default)
            found[name] = Node(state, reason, of_cpus[1], of_cpus[-1], _number(memory), partitions, default)
    return found


def _sinfo() -> str:
    words = ["sinfo", "--all", "--Node", "--noheader", "--format=%N|%T|%C|%m|%R|%P|%E"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("SINFO_")}
    try:
        done = subprocess.run(words, env=own, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except subprocess.TimeoutExpired:
        raise UnreachableError("unreachable", "sinfo did not answer within 60 s: is slurmctld running?") from None
    if done.returncode:
        said = plain_text.plain(done.stderr.strip().rpartition("\n")[2], 200) or f"exit status {done.returncode}"
        raise UnreachableError("unreachable", f"sinfo failed: {said}")
    return done.stdout


def _number(text: str) -> int:
    return plain_text.whole(text) or 0


def not_inside(names: Iterable[str], nodes: Mapping[str, Node], inside: Sequence[str]) -> dict[str, str]:
    """Return why hosts cannot run a step of the current job."""
    wrong = {}
    for name in names:
        if name not in inside:
            wrong[name] = f"it is not in this allocation ({nodeset.fold(inside)})"
        elif name in nodes and nodes[name].why_gone:
            wrong[name] = f"Slurm reports {nodes[name].why_gone}"
    return wrong


def not_to_be_had(names: Iterable[str], nodes: Mapping[str, Node]) -> dict[str, str]:
    """Return why no job could start on hosts."""
    wanted = os.environ.get("SLURM_PARTITION") or os.environ.get("SALLOC_PARTITION")
    wrong = {}
    for name in names:
        node = nodes.get(name)
        if node is None:
            wrong[name] = "Slurm has no node with this name"
        elif node.why_closed:
            wrong[name] = f"Slurm reports {node.why_closed}"
        elif not (node.partitions & set(wanted.split(",")) if wanted else node.default):
            where = f"partition {plain_text.plain(wanted, 50)}" if wanted else "the default partition"
            wrong[name] = f"it is not in {where}: set SLURM_PARTITION={','.join(sorted(node.partitions))}"
    return wrong
