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
import subprocess
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from nodetune import nodeset
from nodetune.model import HostFacts
from nodetune.transport import Options, Target, Unreachable, sinfo, srun
from nodetune.transport.relay import PLACE
from nodetune.transport.sinfo import Node, allocated, check
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

Outcome = tuple[Target, HostFacts | Unreachable, float]
Found = Generator[Outcome, None, None]


def collect(targets: Sequence[Target], script: bytes, nonce: str, options: Options) -> Found:
    """Probe `targets` by their names in Slurm, and yield (target, facts or why not, seconds) as each is done.

    What srun could not start, or ended, because of another node, has a second chance without that node. Closing the generator
    ends the step. Raises sinfo.BadSlurm where srun is not installed.
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
        nodes = sinfo.states()
    except Unreachable as problem:
        yield from ((target, problem, 0.0) for target in targets)
        return
    inside = allocated() if "SLURM_JOB_ID" in os.environ else None
    wrong = sinfo.not_inside(by_name, nodes, inside) if inside is not None else sinfo.not_to_be_had(by_name, nodes)
    yield from ((by_name[name], Unreachable("unreachable", why), 0.0) for name, why in wrong.items())
    names = [name for name in by_name if name not in wrong]
    if not names:
        return
    step = _inside(names, plan) if inside is not None else _outside(names, plan, nodes)
    try:
        for number, found in step.events(plan.seconds if inside is not None else ROOM_SECONDS + STARTING_SECONDS):
            yield by_name[(step.hosts or names)[number]], found, step.spent()
    finally:
        step.close()
    got = set(step.hosts or ())
    for name in names:
        if name not in got:
            yield by_name[name], Unreachable("unreachable", _no_room(nodes[name], step)), step.spent()


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


def _inside(names: Sequence[str], plan: _Plan) -> Step:
    """A step of our own job, its tasks in the order of the names."""
    with srun.host_file(names) as (order, handle):
        which = ["--distribution=arbitrary", f"--nodelist={order}", f"--nodes={len(names)}", f"--ntasks={len(names)}"]
        environment = {**plan.environment, "SLURM_HOSTFILE": order}
        return Step(srun.start(["srun", *TASKS, *which, *plan.program], environment, [handle]), plan, names)


def _outside(names: Sequence[str], plan: _Plan, nodes: Mapping[str, Node]) -> Step:
    """As many of these nodes as are to be had at once: a list of nodes would be had as a whole or not at all."""
    memory = max(1, min([MEMORY, *(nodes[name].memory for name in names)]))
    minutes = math.ceil((plan.seconds + srun.LEAVING_SECONDS + srun.URGED_SECONDS) / 60) + 1
    words = ["salloc", "--quiet", "--job-name=nodetune-audit", f"--nodes=1-{len(names)}", f"--mem={memory}"]
    words += [f"--immediate={ROOM_SECONDS}", f"--time={minutes}"]
    others = [name for name in nodes if name not in plan.targets or name not in names]
    words += [f"--exclude={nodeset.fold(others)}"] if others else []
    script = HERE + shlex.join(plan.program)
    words += ["/bin/sh", "-c", script, plan.nonce, *TASKS, "--distribution=block", "--ntasks-per-node=1"]
    return Step(srun.start(words, plan.environment), plan, None)


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
        found = talk.answer(int(text) if text.lstrip("-").isdigit() else None)
        assert found is not None  # noqa: S101  (only a Dialogue has said all before)
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
