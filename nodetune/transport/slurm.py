"""The facts of a Slurm cluster's nodes by one srun, instead of by a login on each: the same script, the same answer.

In an allocation (salloc, sbatch) the step is part of it. Elsewhere salloc asks for a core of as many of the nodes as have one
to give at this moment. What else it is to ask for stands in the variables that srun reads: SLURM_PARTITION, SLURM_ACCOUNT ….
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from nodetune import factfile, nodeset, show
from nodetune.model import HostFacts
from nodetune.transport import Options, Target, Unreachable, srun
from nodetune.transport.relay import PLACE
from nodetune.transport.talk import Talk

ROOM_SECONDS = 60
"""How long salloc may wait for a node that has a core to give. The backfill scheduler looks every 30 s (bf_interval)."""

STARTING_SECONDS = 60.0
"""What salloc may take besides, for what a site does on its nodes before a job."""

MEMORY = 512
"""MiB on each node, less where a node is said to have less: the probe takes a tenth of it."""

RELAY = "NODETUNE_RELAY"
LONGEST_PART = 60_000
"""Of a variable of the environment; Linux takes 128 KiB each (MAX_ARG_STRLEN)."""

ASKED_BY_SRUN = ("ACCOUNT", "CONSTRAINT", "GPUS_PER_NODE", "GRES", "PARTITION", "QOS", "RESERVATION", "WCKEY")
"""Variables of srun, with SLURM_ before them, that salloc calls SALLOC_…."""

GONE = ("down", "fail", "no_resp", "power", "reboot", "unk", "future")
CLOSED = ("drain", "inval", "block")
"""How the states of nodes begin (sinfo %T) that run nothing, and that begin nothing new."""

ASLEEP = tuple("*~#!%")
"""How they end where a node does not answer, or has no power: https://slurm.schedmd.com/sinfo.html#SECTION_NODE-STATE-CODES"""

Outcome = tuple[Target, HostFacts | Unreachable, float]
Found = Generator[Outcome, None, None]


class BadSlurm(ValueError):
    """What keeps srun from being used at all: one line that says what, and what to do."""


def allocated() -> list[str]:
    """The nodes of the allocation that this runs in, in Slurm's order; none outside of one."""
    return nodeset.unfold(os.environ.get("SLURM_JOB_NODELIST", ""))


def every() -> list[str]:
    """All nodes that Slurm knows, in its order. Raises BadSlurm."""
    check()
    try:
        return list(states())
    except Unreachable as problem:
        raise BadSlurm(problem.message) from None


def check() -> None:
    """Raises BadSlurm where srun is not installed."""
    missing = [tool for tool in ("srun", "salloc", "sinfo") if shutil.which(tool) is None]
    if missing:
        raise BadSlurm(f"--via slurm: {', '.join(missing)} cannot be found: run it on a node of the cluster")


@dataclass(frozen=True)
class Node:
    """What sinfo says of a node. `idle` CPUs, memory in MiB."""

    state: str
    reason: str
    idle: int
    cpus: int
    memory: int
    partitions: frozenset[str]
    default: bool

    @property
    def why_gone(self) -> str:
        """Why nothing runs there; empty where something may."""
        return self._words if self.state.endswith(ASLEEP) or self.state.startswith(GONE) else ""

    @property
    def why_closed(self) -> str:
        """Why no new job begins there; empty where one may."""
        return self.why_gone or (self._words if self.state.startswith(CLOSED) else "")

    @property
    def _words(self) -> str:
        return show.plain(f"{self.state}{f' ({self.reason})' if self.reason not in ('', 'none') else ''}", 200)


def states() -> dict[str, Node]:
    """All nodes that Slurm knows. Raises Unreachable."""
    found: dict[str, Node] = {}
    for line in _sinfo().splitlines():
        fields = line.strip().split("|", 6)
        if len(fields) == 7:
            name, state, cpus, memory, partition, marked, reason = fields
            of_cpus = [_number(each) for each in cpus.split("/")]
            node = Node(
                state, reason, of_cpus[1], of_cpus[-1], _number(memory), frozenset([partition]), marked.endswith("*")
            )
            known = found.get(name)
            found[name] = replace(
                node,
                partitions=node.partitions | (known.partitions if known else frozenset()),
                default=node.default or bool(known and known.default),
            )
    return found


def _sinfo() -> str:
    words = ["sinfo", "--all", "--Node", "--noheader", "--format=%N|%T|%C|%m|%R|%P|%E"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("SINFO_")}
    try:
        done = subprocess.run(words, env=own, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except subprocess.TimeoutExpired:
        raise Unreachable("unreachable", "sinfo did not answer within 60 s: is slurmctld well?") from None
    if done.returncode:
        said = show.plain(done.stderr.strip().rpartition("\n")[2], 200) or f"exit status {done.returncode}"
        raise Unreachable("unreachable", f"sinfo failed: {said}")
    return done.stdout


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def collect(targets: Sequence[Target], script: bytes, nonce: str, options: Options) -> Found:
    """Probe `targets` by their names in Slurm, and yield (target, facts or why not, seconds) as each is done.

    What srun could not start, or ended, because of another node, has a second chance without that node. Closing the generator
    ends the step. Raises BadSlurm where srun is not installed.
    """
    check()
    left = list(targets)
    for last in (False, True):
        again: list[Target] = []
        for target, found, seconds in _collect(left, script, nonce, options):
            if isinstance(found, _Aborted) and not last:
                again.append(target)
            else:
                yield target, found, seconds
        left = again
        if not left:
            return


def _collect(targets: Sequence[Target], script: bytes, nonce: str, options: Options) -> Found:
    """One step over those of the targets that can be had now."""
    by_name = {target.name: target for target in targets}
    try:
        plan = _Plan(targets, script, nonce, options)
        nodes = states()
    except Unreachable as problem:
        yield from ((target, problem, 0.0) for target in targets)
        return
    inside = allocated() if "SLURM_JOB_ID" in os.environ else None
    wrong = _in_allocation(by_name, nodes, inside) if inside is not None else _to_be_had(by_name, nodes)
    yield from ((by_name[name], Unreachable("unreachable", why), 0.0) for name, why in wrong.items())
    names = [name for name in by_name if name not in wrong]
    if not names:
        return
    with tempfile.TemporaryDirectory(prefix="nodetune-") as folder:
        words = _inside(names, plan, Path(folder)) if inside is not None else _outside(names, plan, nodes)
        step = Step(srun.start(words, plan.environment), plan, names if inside is not None else None)
        try:
            for number, found in step.events(plan.seconds if inside is not None else ROOM_SECONDS + STARTING_SECONDS):
                yield by_name[(step.hosts or names)[number]], found, step.spent()
        finally:
            step.close()
    got = set(step.hosts or ())
    for name in names:
        if name not in got:
            yield by_name[name], Unreachable("unreachable", _no_room(nodes[name], step)), step.spent()


def _in_allocation(names: Mapping[str, Target], nodes: Mapping[str, Node], inside: Sequence[str]) -> dict[str, str]:
    """Why nothing can be started on which of the hosts, as a step of our own job."""
    wrong = {}
    for name in names:
        if name not in inside:
            wrong[name] = f"it is not in this allocation ({nodeset.fold(inside)})"
        elif name in nodes and nodes[name].why_gone:
            wrong[name] = f"Slurm says {nodes[name].why_gone}"
    return wrong


def _to_be_had(names: Mapping[str, Target], nodes: Mapping[str, Node]) -> dict[str, str]:
    """Why no job could begin on which of the hosts."""
    wanted = os.environ.get("SLURM_PARTITION") or os.environ.get("SALLOC_PARTITION")
    wrong = {}
    for name in names:
        node = nodes.get(name)
        if node is None:
            wrong[name] = "Slurm knows no node of this name"
        elif node.why_closed:
            wrong[name] = f"Slurm says {node.why_closed}"
        elif not (node.partitions & set(wanted.split(",")) if wanted else node.default):
            where = f"partition {show.plain(wanted, 50)}" if wanted else "the default partition"
            wrong[name] = f"it is not in {where}: set SLURM_PARTITION={','.join(sorted(node.partitions))}"
    return wrong


def _no_room(node: Node, step: Step) -> str:
    text = f"Slurm had nothing of it to give ({node.state}, {node.idle} of {node.cpus} CPUs idle)"
    return text + (step.said() if step.hosts is None else "")


class _Plan:
    """What all nodes are to do: one script, mostly one command."""

    def __init__(self, targets: Sequence[Target], script: bytes, nonce: str, options: Options) -> None:
        self.targets = {target.name: target for target in targets}
        self.seconds = options.seconds
        self.nonce = nonce
        self._script = script
        self._most = options.most_bytes
        commands = {target.name: self.talk(target.name).command for target in targets}
        usual = Counter(commands.values()).most_common(1)[0][0]
        others = {name: command for name, command in commands.items() if command != usual}
        given = {"nonce": nonce, "seconds": self.seconds, "most": self._most, "command": usual, "others": others}
        text = json.dumps({**given, "script": script.decode("ascii")})
        parts = [text[at : at + LONGEST_PART] for at in range(0, len(text), LONGEST_PART)]
        asked = {
            f"SALLOC_{name}": os.environ[f"SLURM_{name}"] for name in ASKED_BY_SRUN if f"SLURM_{name}" in os.environ
        }
        self.environment = {**asked, RELAY: _relay(), **{f"{PLACE}{number}": part for number, part in enumerate(parts)}}
        pythons = Counter(target.python for target in targets)
        python = max(pythons, key=lambda each: (pythons[each], each == "python3"))
        self.program = [*shlex.split(python), "-I", "-S", "-c", f"import os; exec(os.environ.pop({RELAY!r}))"]

    def talk(self, name: str) -> Talk:
        """Raises Unreachable (unsupported)."""
        return Talk(self.targets[name], self._script, self.nonce, self._most)


@cache
def _relay() -> str:
    return (Path(__file__).parent / "relay.py").read_text("utf-8")


TASKS = (*srun.OPTIONS, "--overlap", "--export=ALL", "--propagate=NONE")
"""A shell's limits on this machine are not the node's."""

HERE = 'printf "%s nodes %s\\n" "$0" "$SLURM_JOB_NODELIST"; exec srun "$@" --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" '
"""What salloc runs on this machine: only then is it known which nodes there are."""


def _inside(names: Sequence[str], plan: _Plan, folder: Path) -> list[str]:
    order = folder / "hosts"
    order.write_text("".join(f"{name}\n" for name in names), "utf-8")
    plan.environment["SLURM_HOSTFILE"] = str(order)
    which = ["--distribution=arbitrary", f"--nodelist={order}", f"--nodes={len(names)}", f"--ntasks={len(names)}"]
    return ["srun", *TASKS, *which, *plan.program]


def _outside(names: Sequence[str], plan: _Plan, nodes: Mapping[str, Node]) -> list[str]:
    """As many of these nodes as are to be had at once: a list of nodes would be had as a whole or not at all."""
    memory = max(1, min([MEMORY, *(nodes[name].memory for name in names)]))
    minutes = math.ceil((plan.seconds + srun.LEAVING_SECONDS + srun.URGED_SECONDS) / 60) + 1
    words = ["salloc", "--quiet", "--job-name=nodetune-audit", f"--nodes=1-{len(names)}", f"--mem={memory}"]
    words += [f"--immediate={ROOM_SECONDS}", f"--time={minutes}"]
    others = [name for name in nodes if name not in plan.targets or name not in names]
    words += [f"--exclude={nodeset.fold(others)}"] if others else []
    script = HERE + shlex.join(plan.program)
    return [*words, "/bin/sh", "-c", script, plan.nonce, *TASKS, "--distribution=block", "--ntasks-per-node=1"]


class _Aborted(Unreachable):
    """A task that srun ended because another one could not be started."""


class Step(srun.Step):
    """What the tasks say: (number of the task, facts or why there are none)."""

    def __init__(self, process: subprocess.Popen[bytes], plan: _Plan, hosts: Sequence[str] | None) -> None:
        super().__init__(process, hosts)
        self._plan = plan
        self._talks: dict[int, Talk] = {}

    def hear_unlabelled(self, line: bytes) -> None:
        mark, _, names = line.decode("utf-8", "replace").partition(" nodes ")
        if self.hosts is None and mark == self._plan.nonce:
            self.hosts = nodeset.unfold(names.strip())
            self.wait(self._plan.seconds)

    def hear(self, number: int, line: bytes) -> srun.Told:
        words = line.split()
        if len(words) != 3 or words[0] != self._plan.nonce.encode():
            return  # what the node's task prolog, or Slurm itself, had to say
        self.begun(number)
        try:
            yield from self._line(number, words[1], words[2])
        except Unreachable as problem:
            yield from self.gone(number, problem.state, problem.message)

    def _line(self, number: int, kind: bytes, data: bytes) -> srun.Told:
        if kind == b"b":
            return
        talk = self._talk(number)
        if kind == b"x":
            yield from self._answer(number, talk, data)
            return
        (talk.output if kind == b"o" else talk.errors)(_decoded(data))
        if talk.complete:
            yield from self._answer(number, talk, b"")

    def _talk(self, number: int) -> Talk:
        if number not in self._talks:
            self._talks[number] = self._plan.talk((self.hosts or ())[number])
        return self._talks[number]

    def _answer(self, number: int, talk: Talk, status: bytes) -> srun.Told:
        """Raises Unreachable."""
        text = status.decode("ascii", "replace")
        name = (self.hosts or ())[number]
        try:
            found = factfile.from_data(talk.answer(int(text) if text.lstrip("-").isdigit() else None), name)
        except factfile.BadFacts as problem:
            raise Unreachable("bad answer", str(problem)) from None
        self.over(number)
        self._talks.pop(number)
        yield number, HostFacts(found.host, found.facts, {**found.about, "transport": "slurm"})

    def lost(self, number: int, problem: Unreachable) -> srun.Told:
        self._talks.pop(number, None)
        mine = problem.state == "dropped" and self.not_started
        yield number, _Aborted(problem.state, problem.message) if mine else problem


def _decoded(data: bytes) -> bytes:
    """Raises Unreachable."""
    with suppress(binascii.Error):
        return base64.b64decode(data, validate=True)
    raise Unreachable("bad answer", "a line of the answer is damaged")
