"""Read the facts of a Slurm cluster's nodes by one srun instead of a login on each: same script, same answer.

In an allocation (salloc, sbatch) the step is part of it. Elsewhere salloc requests one core on as many of the nodes as
have one free now. Further requests come from the variables that srun reads: SLURM_PARTITION, SLURM_ACCOUNT ….
"""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import subprocess
from collections import Counter
from collections.abc import Generator, Mapping, Sequence

from nodetune.api.model import HostFacts
from nodetune.foundation import nodeset
from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote import payload
from nodetune.remote.login.session import Session
from nodetune.remote.pool import Waiting
from nodetune.remote.slurm import sinfo, srun
from nodetune.remote.slurm.relay import PLACE
from nodetune.remote.slurm.sinfo import Node, allocated, check

ROOM_SECONDS = 60
"""Seconds that salloc may wait for a node with a free core. The backfill scheduler runs every 30 s (bf_interval)."""

STARTING_SECONDS = 60.0
"""Additional seconds for salloc, for what a site does on its nodes before a job."""

MEMORY = 512
"""MiB on each node, or less if Slurm reports less for a node: the probe uses a tenth of it."""

KILLED = {code for number in (signal.SIGKILL, signal.SIGTERM) for code in (-number, 128 + number)}
"""Exit statuses of a killed probe, also as a shell before it reports them."""

RELAY = "NODETUNE_RELAY"
MAX_PART_LENGTH = 60_000
"""Limit for an environment variable; Linux accepts 128 KiB each (MAX_ARG_STRLEN)."""

ASKED_BY_SRUN = ("ACCOUNT", "CONSTRAINT", "GPUS_PER_NODE", "GRES", "PARTITION", "QOS", "RESERVATION", "WCKEY")
"""Variables of srun (with the prefix SLURM_) whose names begin with SALLOC_ for salloc."""

Outcome = tuple[Target, HostFacts | UnreachableError, float]
Found = Generator[Outcome, None, None]
Asked = Mapping[str, list[str]] | None


def collect(
    targets: Sequence[Target], script: bytes, nonce: str, options: SessionOptions, asked: Asked = None
) -> Found:
    """Probe `targets` by their names in Slurm, and yield (target, facts or error, seconds) as each completes.

    `asked` are the fact families and names that the script probes; others are dropped. None: nothing is dropped.
    Nodes that srun could not start or ended because of another node get a second try without that node. Closing the
    generator ends the step. Raise sinfo.SlurmError if srun is not installed.
    """
    check()
    left = [target for target in targets if not target.problem]
    for target in targets:
        if target.problem:
            yield target, UnreachableError("bad variables", target.problem), 0.0
    for last in (False, True):
        again: list[Target] = []
        for target, found, seconds in _collect(left, script, nonce, options, asked):
            if isinstance(found, _CutError) and not last:
                again.append(target)
            else:
                yield target, found, seconds
        left = again
        if not left:
            return


def _collect(
    targets: Sequence[Target], script: bytes, nonce: str, options: SessionOptions, asked: Asked = None
) -> Found:
    """Run one step over the targets that are available now."""
    by_name = {target.name: target for target in targets}
    try:
        plan = _Plan(targets, script, nonce, options, asked)
        nodes = sinfo.states()
    except UnreachableError as problem:
        yield from ((target, problem, 0.0) for target in targets)
        return
    inside = allocated() if "SLURM_JOB_ID" in os.environ else None
    wrong = sinfo.not_inside(by_name, nodes, inside) if inside is not None else sinfo.not_to_be_had(by_name, nodes)
    yield from ((by_name[name], UnreachableError("unreachable", why), 0.0) for name, why in wrong.items())
    names = [name for name in by_name if name not in wrong]
    if not names:
        return
    step = _inside(names, plan) if inside is not None else _outside(names, plan, nodes)
    cut: list[tuple[Target, _CutError, float]] = []
    try:
        for number, found in step.events(plan.seconds if inside is not None else ROOM_SECONDS + STARTING_SECONDS):
            target = by_name[(step.hosts or names)[number]]
            if isinstance(found, _CutError):
                cut.append((target, found, step.spent()))
            else:
                yield target, found, step.spent()
    finally:
        step.close()
    # Whether srun cut them off because of another node is known when all have ended: its word may come after theirs.
    yield from (
        (target, why if step.not_started else UnreachableError(why.state, why.message), took)
        for target, why, took in cut
    )
    got = set(step.hosts or ())
    for name in names:
        if name not in got:
            node, said = nodes[name], step.said() if step.hosts is None else ""
            text = f"Slurm could give nothing on it ({node.state}, {node.idle} of {node.cpus} CPUs idle){said}"
            yield by_name[name], UnreachableError("unreachable", text), step.spent()


class _Plan:
    """The work of all nodes: one script, usually one command."""

    def __init__(
        self, targets: Sequence[Target], script: bytes, nonce: str, options: SessionOptions, asked: Asked = None
    ) -> None:
        self.waiting = Waiting(asked)
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
        parts = [text[at : at + MAX_PART_LENGTH] for at in range(0, len(text), MAX_PART_LENGTH)]
        requests = {name: os.environ[f"SLURM_{name}"] for name in ASKED_BY_SRUN if f"SLURM_{name}" in os.environ}
        self.environment = {f"SALLOC_{name}": value for name, value in requests.items()}
        self.environment |= {RELAY: payload.relay(nonce)}
        self.environment |= {f"{PLACE}{number}": part for number, part in enumerate(parts)}
        pythons = Counter(target.python for target in targets)
        python = max(pythons, key=lambda each: (pythons[each], each == "python3"))
        self.program = [*shlex.split(python), "-I", "-S", "-c", f"import os; exec(os.environ.pop({RELAY!r}))"]

    def talk(self, name: str) -> Session:
        """Return the session of a node. Raise UnreachableError (unsupported)."""
        session = Session(self.targets[name], self._script, self.nonce, self._most)
        session.asked = self.waiting.asked
        return session


TASKS = (*srun.OPTIONS, "--overlap", "--export=ALL", "--propagate=NONE")
"""The shell limits of this machine do not apply to the node."""

HERE = 'printf "%s nodes %s\\n" "$0" "$SLURM_JOB_NODELIST"; exec srun "$@" --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" '
"""The command that salloc runs on this machine: only then are the nodes known."""


def _inside(names: Sequence[str], plan: _Plan) -> ProbeStep:
    """Start a step of the current job, with its tasks in the order of the names."""
    with srun.host_file(names) as (order, handle):
        which = ["--distribution=arbitrary", f"--nodelist={order}", f"--nodes={len(names)}", f"--ntasks={len(names)}"]
        environment = {**plan.environment, "SLURM_HOSTFILE": order}
        return ProbeStep(srun.start(["srun", *TASKS, *which, *plan.program], environment, [handle]), plan, names)


def _outside(names: Sequence[str], plan: _Plan, nodes: Mapping[str, Node]) -> ProbeStep:
    """Start as many of these nodes as are available at once: with a node list it would be all or none."""
    memory = max(1, min([MEMORY, *(nodes[name].memory for name in names)]))
    minutes = math.ceil((plan.seconds + srun.LEAVING_SECONDS + srun.URGED_SECONDS) / 60) + 1
    words = ["salloc", "--quiet", "--job-name=nodetune-audit", f"--nodes=1-{len(names)}", f"--mem={memory}"]
    words += [f"--immediate={ROOM_SECONDS}", f"--time={minutes}"]
    others = [name for name in nodes if name not in plan.targets or name not in names]
    words += [f"--exclude={nodeset.fold(others)}"] if others else []
    script = HERE + shlex.join(plan.program)
    words += ["/bin/sh", "-c", script, plan.nonce, *TASKS, "--distribution=block", "--ntasks-per-node=1"]
    return ProbeStep(srun.start(words, plan.environment), plan, None)


class _CutError(UnreachableError):
    """A task that ended before its probe had answered: on its own, or because srun ended all tasks."""


class ProbeStep(srun.SrunStep):
    """A probing srun. It yields (number of the task, facts or error)."""

    def __init__(self, process: subprocess.Popen[bytes], plan: _Plan, hosts: Sequence[str] | None) -> None:
        super().__init__(process, hosts, plan.nonce, bytes)
        self._plan = plan
        self._talks: dict[int, Session] = {}

    def hear_unlabelled(self, line: bytes) -> None:
        mark, _, names = line.decode("utf-8", "replace").partition(" nodes ")
        if self.hosts is None and mark == self._plan.nonce:
            self.hosts = nodeset.unfold(names.strip())
            self.wait(self._plan.seconds)

    def hear(self, number: int, found: bytes) -> srun.Told:
        kind, data = found[:1], found[1:]
        if kind == b"b":
            return
        talk = self._talk(number)
        if kind in (b"o", b"e"):
            (talk.output if kind == b"o" else talk.errors)(data)
        if kind == b"x" or talk.complete:
            yield from self._answer(number, talk, data if kind == b"x" else b"")

    def taken(self, number: int, size: int) -> None:
        self._plan.waiting.add((self.hosts or ())[number], size)

    def over(self, number: int) -> None:
        super().over(number)
        self._talks.pop(number, None)
        self._plan.waiting.over(self._plan.targets[(self.hosts or ())[number]])

    def _talk(self, number: int) -> Session:
        if number not in self._talks:
            self._talks[number] = self._plan.talk((self.hosts or ())[number])
        return self._talks[number]

    def _answer(self, number: int, session: Session, status: bytes) -> srun.Told:
        """Yield the facts of a node. Raise UnreachableError."""
        code = plain_text.whole(status.decode("ascii", "replace"))
        if code in KILLED and not session.complete:  # a step that srun ends: Slurm, or its relay, kills the probe
            raise UnreachableError("dropped", "its probe was killed before it answered")
        found = session.answer(code)
        assert found is not None  # noqa: S101  (only a live session has sent everything before)
        self.over(number)
        yield number, HostFacts(found.host, found.facts, {**found.about, "transport": "slurm"})

    def lost(self, number: int, problem: UnreachableError) -> srun.Told:
        yield number, _CutError(problem.state, problem.message) if problem.state == "dropped" else problem
