"""Has the nodes of a Slurm allocation measure, started by one srun instead of by SSH: the same script, the same wire.

Task n of the step is host n of the group. srun gives what it reads to every task and puts `n: ` before each line that
task n prints, so that one process here carries all hosts. Where this runs inside an allocation (salloc, sbatch) the step
is part of it; elsewhere srun asks for one itself.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from nodetune import bundle, measuring, nodeset, show
from nodetune.transport import Unreachable, pipes
from nodetune.transport.conversation import Ended
from nodetune.transport.dialogue import STARTER
from nodetune.verify import wire

STARTING_SECONDS = 60.0
"""How long srun may take to get the nodes and start the tasks."""

LEAVING_SECONDS = 15.0
"""A step whose input has ended is over as soon as everything that it measured with is gone."""

CHUNK = 1 << 16
KEPT_ERRORS = 16 << 10
LONGEST_REST = 1 << 16
PIECE = 1024
"""srun cuts a task's lines into pieces of so many bytes, each with a label and an end of its own; the last one is shorter."""

LABELLED = re.compile(rb"^ *(\d+): (.*)$", re.DOTALL)
TASK_ENDED = re.compile(r"srun: error: \S+: tasks? ([\d,-]+): (.+)")

Event = tuple[str, dict[str, Any] | Ended]


def allocated() -> list[str]:
    """The nodes of the allocation that this runs in, in Slurm's order; none outside of one."""
    return nodeset.unfold(os.environ.get("SLURM_JOB_NODELIST", ""))


def measure(
    hosts: Sequence[str], plan: measuring.Plan, python: str = "python3", arguments: Sequence[str] = ()
) -> Generator[Event, None, None]:
    """Carry out one plan on all hosts together, and yield (host, event) as they come, Ended once for each host.

    `hosts` are Slurm's names of the nodes; `arguments` go to srun (`--partition=…`, `--gpus-per-node=8`). Events are those
    of measuring.measure. Closing the generator ends everything. Raises ValueError for a plan that makes no sense.
    """
    whole = measuring.complete({**plan, "group": {"hosts": list(hosts)}}, hosts[0], secrets.token_hex(4))
    seconds = STARTING_SECONDS + sum(each["seconds"] + measuring.ENDING_SECONDS for each in whole["measurements"])
    shared = {**whole, "group": {"hosts": list(hosts)}}  # each task knows its own number
    script, nonce = bundle.measuring(shared)
    with tempfile.TemporaryDirectory(prefix="nodetune-") as folder:
        order = Path(folder) / "hosts"
        order.write_text("".join(f"{host}\n" for host in hosts), "utf-8")
        try:
            process = start(command(len(hosts), order, python, arguments), order)
        except OSError as problem:
            gone = Unreachable("unsupported", f"srun cannot be run: {problem.strerror}: is this a node of the cluster?")
            yield from ((host, Ended(gone, 0.0)) for host in hosts)
            return
        step = Step(process, shared, script, nonce)
        try:
            yield from step.events(seconds)
        finally:
            step.close()


def command(count: int, order: Path, python: str, arguments: Sequence[str]) -> list[str]:
    """The srun that starts one Python a node, in the order of the file. Pinning and memory are the measurements' own affair."""
    options = ["--label", "--distribution=arbitrary", f"--nodelist={order}", f"--nodes={count}", f"--ntasks={count}"]
    options += ["--cpu-bind=none", "--mem=0", "--mpi=none", "--kill-on-bad-exit=0", "--job-name=nodetune-verify"]
    if "SLURM_JOB_ID" in os.environ:
        options.append("--overlap")
    else:
        options.append(f"--immediate={STARTING_SECONDS:.0f}")
    return ["srun", *options, *arguments, python, "-I", "-S", *shlex.split(STARTER)]


def start(words: Sequence[str], order: Path) -> subprocess.Popen[bytes]:
    """Raises OSError."""
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "SLURM_HOSTFILE": str(order)},
        bufsize=0,
        start_new_session=True,
    )


class Step:
    """A running srun, and what its tasks say."""

    def __init__(self, process: subprocess.Popen[bytes], plan: measuring.Plan, script: bytes, nonce: str) -> None:
        self._process = process
        self._plan = plan
        self._hosts: list[str] = plan["group"]["hosts"]
        self._nonce = nonce
        self._to_send = script
        self._rest = b""
        self._errors = b""
        self._error_rest = ""
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._decoders = [wire.Decoder(nonce) for _ in self._hosts]
        self._start = time.monotonic()
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe]

    def events(self, seconds: float) -> Generator[Event, None, None]:
        """What the tasks say, until all have ended or the time is over."""
        open_ones = {pipe.fileno(): pipe for pipe in self._pipes()[1:]}
        while len(self._ended) < len(self._hosts):
            left = self._start + seconds - time.monotonic()
            if left <= 0:
                yield from self._all_gone("deadline", f"srun was not done within {seconds:.0f} s{self._said()}")
                return
            if not open_ones:
                yield from self._all_gone("dropped", f"srun has ended{self._said()}")
                return
            yield from self._round(open_ones, min(left, 1.0))

    def _round(self, open_ones: dict[int, IO[bytes]], wait: float) -> Generator[Event, None, None]:
        given = self._pipes()[0]
        ready, room, _ = select.select(list(open_ones), [given.fileno()] if self._to_send else [], [], wait)
        if room:
            self._send(given)
        for handle in ready:
            data = os.read(handle, CHUNK)
            if not data:
                del open_ones[handle]
            elif open_ones[handle] is self._process.stdout:
                yield from self._take(data)
            else:
                yield from self._complaint(data)

    def _send(self, given: IO[bytes]) -> None:
        try:
            self._to_send = self._to_send[os.write(given.fileno(), self._to_send[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended; what it printed says why
            self._to_send = b""

    def _take(self, data: bytes) -> Generator[Event, None, None]:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[-LONGEST_REST:]
        for line in lines:
            found = LABELLED.match(line)
            if found and int(found[1]) < len(self._hosts):
                piece = found[2]
                yield from self._line(int(found[1]), piece if len(piece) == PIECE else piece + b"\n")

    def _line(self, number: int, line: bytes) -> Generator[Event, None, None]:
        if number in self._ended:
            return
        decoder = self._decoders[number]
        try:
            events = decoder.feed(line)
        except wire.BadLine as problem:
            yield from self._gone(number, "bad answer", f"a line of the measuring program is damaged: {problem}")
            return
        if decoder.old:
            yield from self._gone(number, "no python", f"python3 there is Python {decoder.old}: 3.6 or newer is needed")
            return
        for event in events:
            yield from self._hear(number, event)

    def _hear(self, number: int, event: Mapping[str, Any]) -> Generator[Event, None, None]:
        told = event.get("tell")
        if isinstance(told, dict) and isinstance(told.get("number"), int) and isinstance(told.get("topic"), str):
            kept = {"number": told["number"], "topic": told["topic"], "data": told.get("data")}
            self._broadcast({"told": {**kept, "from": number}})
        self._begun.add(number)
        for each in measuring.safe(event, self._plan):
            yield self._hosts[number], each
        if "end" in event:
            yield from self._end(number, None)

    def _broadcast(self, event: Mapping[str, Any]) -> None:
        """Tell all tasks; the one that it came from knows it already."""
        self._to_send += wire.encode(event, self._nonce)

    def _complaint(self, data: bytes) -> Generator[Event, None, None]:
        """What srun itself, or a task's Python, prints on standard error."""
        self._errors = (self._errors + data)[-KEPT_ERRORS:]
        *lines, self._error_rest = (self._error_rest + data.decode("utf-8", "replace"))[-KEPT_ERRORS:].split("\n")
        for line in lines:
            found = TASK_ENDED.search(line)
            for number in tasks(found[1]) if found else []:
                if number < len(self._hosts):
                    yield from self._gone(number, *self._why(number))

    def _why(self, number: int) -> tuple[str, str]:
        """Why a task ended before it said so."""
        if number in self._begun:
            return "dropped", f"its task ended{self._said()}"
        return "no python", f"its task ended before it said anything{self._said()}: is python3 (3.6 or newer) there?"

    def _gone(self, number: int, state: str, message: str) -> Generator[Event, None, None]:
        if number not in self._ended:
            yield from self._end(number, Unreachable(state, message))

    def _all_gone(self, state: str, message: str) -> Generator[Event, None, None]:
        for number in range(len(self._hosts)):
            yield from self._gone(number, state, message)

    def _end(self, number: int, problem: Unreachable | None) -> Generator[Event, None, None]:
        self._ended.add(number)
        self._broadcast({"gone": number})
        yield self._hosts[number], Ended(problem, time.monotonic() - self._start)

    def _said(self) -> str:
        """The last complaint that is more than a task's exit status, where there is one."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [line for line in lines if not TASK_ENDED.search(line)] or lines
        return f": {show.plain(telling[-1], 300)}" if telling else ""

    def close(self) -> None:
        """End the step: the end of their input ends all tasks. srun is killed if it does not notice."""
        given, *others = self._pipes()
        given.close()
        end = time.monotonic() + LEAVING_SECONDS
        for pipe in others:
            _drain(pipe, end)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.1, end - time.monotonic()))
        pipes.kill(self._process)
        self._process.wait()
        for pipe in others:
            pipe.close()


def _drain(pipe: IO[bytes], end: float) -> None:
    """Read on, so that nobody there is stuck with what we no longer want."""
    while time.monotonic() < end:
        if select.select([pipe.fileno()], [], [], 0.2)[0] and not os.read(pipe.fileno(), CHUNK):
            return


def tasks(text: str) -> list[int]:
    """`0,2-3` → [0, 2, 3]."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.extend(range(int(first), min(int(last or first), int(first) + 10000) + 1))
    return found
