"""A running srun: what its tasks say, who of them has ended and why, and what they are told."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import IO, Any

from nodetune import measuring, show
from nodetune.transport import Unreachable, pipes
from nodetune.transport.conversation import Ended
from nodetune.verify import wire

LEAVING_SECONDS = 15.0
"""A step whose input has ended is over as soon as everything that it measured with is gone."""

CHUNK = 1 << 16
KEPT_ERRORS = 16 << 10
LONGEST_REST = 1 << 16

LABELLED = re.compile(rb"^ *(\d+): (.*)$", re.DOTALL)
NO_BINDING = "lacks support for cpu binding"
"""What srun says of --cpu-bind=none where nothing would bind anyway."""

TASK_ENDED = re.compile(r"srun: error: \S+: tasks? ([\d,-]+): (.+)")

Told = Generator[tuple[int, dict[str, Any] | Ended], None, None]


class Step:
    """A running srun, and what its tasks say: (number of the task, event)."""

    def __init__(self, process: subprocess.Popen[bytes], plan: measuring.Plan, script: bytes, nonce: str) -> None:
        self._process = process
        self._plans = [plan["plans"][number] for number in plan["of"]]
        self._of: list[int] = plan["of"]
        self._hosts: list[str] = plan["hosts"]
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

    def events(self, seconds: float) -> Told:
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

    def _round(self, open_ones: dict[int, IO[bytes]], wait: float) -> Told:
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

    def _take(self, data: bytes) -> Told:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[-LONGEST_REST:]
        for line in lines:
            found = LABELLED.match(line)
            if found and int(found[1]) < len(self._hosts):
                yield from self._line(int(found[1]), found[2] + b"\n")

    def _line(self, number: int, line: bytes) -> Told:
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

    def _hear(self, number: int, event: Mapping[str, Any]) -> Told:
        self._begun.add(number)
        self._relay(number, event)
        for each in measuring.safe(event, self._plans[number]):
            yield number, each
        if "end" in event:
            yield from self._end(number, None)

    def _relay(self, number: int, event: Mapping[str, Any] | Ended) -> None:
        """Tell all tasks what the group of this one is to hear; those of other groups do not listen."""
        plan = self._plans[number]
        if plan["group"]:
            hosts = plan["group"]["hosts"]
            place = {"group": {"self": hosts.index(self._hosts[number])}}
            for told in measuring.relayed(event, place):
                self._to_send += wire.encode({**told, "plan": self._of[number]}, self._nonce)

    def _complaint(self, data: bytes) -> Told:
        """What srun itself, or a task's Python, prints on standard error."""
        self._errors = (self._errors + data)[-KEPT_ERRORS:]
        *lines, self._error_rest = (self._error_rest + data.decode("utf-8", "replace"))[-KEPT_ERRORS:].split("\n")
        for line in lines:
            found = TASK_ENDED.search(line)
            for number in tasks(found[1]) if found else []:
                if number < len(self._hosts):
                    how = show.plain(found[2], 100) if found else ""
                    yield from self._gone(number, *self._why(number, how))

    def _why(self, number: int, how: str) -> tuple[str, str]:
        """Why a task ended before it said so; `how` in Slurm's words."""
        if number in self._begun or not how.startswith("Exited"):
            return "dropped", f"its task ended ({how}){self._said()}"
        return "no python", f"its task ended before it said anything{self._said()}: is python3 (3.6 or newer) there?"

    def _gone(self, number: int, state: str, message: str) -> Told:
        if number not in self._ended:
            yield from self._end(number, Unreachable(state, message))

    def _all_gone(self, state: str, message: str) -> Told:
        for number in range(len(self._hosts)):
            yield from self._gone(number, state, message)

    def _end(self, number: int, problem: Unreachable | None) -> Told:
        ended = Ended(problem, time.monotonic() - self._start)
        self._ended.add(number)
        self._relay(number, ended)
        yield number, ended

    def _said(self) -> str:
        """The last complaint that is more than a task's exit status."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [line for line in lines if not TASK_ENDED.search(line) and NO_BINDING not in line]
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
