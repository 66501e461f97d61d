"""Work that may never come back, in a child that can be left behind.

It lives in its own session, with nothing open but a pipe to us, and dies with us if it can. What must not pile up
carries a name (its comm): before the work it looks whether another of that name is there.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time

from nodetune.probe import main

TYPE_CHECKING = False  # the real one is in typing, which costs ten milliseconds before the readers are started
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Work = Callable[[main.Reporter], None]

PR_SET_PDEATHSIG = 1
KILLED_WITHIN = 0.2
TURN_POLL = 0.01
TICKS = os.sysconf("SC_CLK_TCK")
STUCK_STATES = "D"


class Child:
    """A child at work. `messages` are [kind, content] pairs; `step` is what it last said that it is about to do."""

    def __init__(self, work: Work) -> None:
        self.step, self.since = "", time.monotonic()
        self._buffer = b""
        self.pipe, there = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _in_child(work, there, parent)
        os.close(there)

    def take(self) -> list[Any] | None:
        """The messages that are there now, without the steps; None when it has ended. Blocks where there are none."""
        data = os.read(self.pipe, 1 << 16)
        lines = (self._buffer + data).split(b"\n")
        self._buffer = lines.pop()
        found = [json.loads(line) for line in lines]
        for kind, content in found:
            if kind == "step":
                self.step, self.since = content, time.monotonic()
        if not data or len(self._buffer) > main.LARGEST_MESSAGE:
            return None
        return [each for each in found if each[0] != "step"]

    def ended(self) -> int:
        """Wait for one that has closed its pipe; the number of the signal that ended it, or 0."""
        os.close(self.pipe)
        status = os.waitpid(self.pid, 0)[1]
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def abandon(self) -> bool:
        """Kill it. True when it is still there: stuck in the kernel."""
        os.close(self.pipe)
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except OSError:
                continue  # no group yet, or it has just ended
        end = time.monotonic() + KILLED_WITHIN
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() > end:
                return True
            time.sleep(0.005)
        return False


def answer(work: Work, seconds: float) -> Any:
    """The content of the one message that this work sends; None where it does not come in time. Leaves it behind then."""
    child, end = Child(work), time.monotonic() + seconds
    said: Any = None
    while select.select([child.pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        messages = child.take()
        if messages is None:
            child.ended()
            return said
        said = messages[-1][1] if messages else said
    child.abandon()
    return None


def _in_child(work: Work, pipe: int, parent: int) -> None:
    """Never returns."""
    code = 1
    try:
        import ctypes

        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        high = os.dup(pipe) if pipe < 4 else pipe  # whatever was open before, the pipe ends up at 3
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        os.dup2(high, 3)
        os.closerange(4, 1024)
        if os.getppid() == parent:
            work(main.Reporter(3))
            code = 0
    finally:
        os._exit(code)


def turn(name: str, seconds: float, stuck: float) -> tuple[str, str] | None:
    """Wait until no other process carries the name, and carry it. ("stuck" or "busy", which) where one stays.

    Each takes the name and then looks, so that of two that do so together at least one sees the other. One that sits
    in the kernel for longer than any reader may take (`stuck` seconds) is not waited for.
    """
    own = _comm("self")
    end = time.monotonic() + seconds
    while True:
        _call_ourselves(name)
        others = _others(name)
        if not others:
            return None
        _call_ourselves(own)
        sitting = [each for each in others if each[2] in STUCK_STATES and each[1] >= stuck]
        pid, age, _ = (sitting or others)[0]
        text = f"an earlier reader (process {pid}, {age:.0f} s old) has not come back"
        if sitting:
            return "stuck", text
        if time.monotonic() > end:
            return "busy", text
        time.sleep(TURN_POLL + ord(os.urandom(1)) / 5000.0)


def _comm(pid: str) -> str:
    handle = os.open(f"/proc/{pid}/comm", os.O_RDONLY)
    try:
        return os.read(handle, 64).decode("utf-8", "replace").rstrip("\n")
    finally:
        os.close(handle)


def _call_ourselves(name: str) -> None:
    handle = os.open("/proc/self/comm", os.O_WRONLY)
    try:
        os.write(handle, name.encode())
    finally:
        os.close(handle)


def _others(name: str) -> list[tuple[int, float, str]]:
    """(process, age in seconds, state) of root's or our own processes of that name, oldest first."""
    found = []
    own, users = os.getpid(), (0, os.getuid())
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == own:
            continue
        try:
            if _comm(entry) != name or os.stat(f"/proc/{entry}").st_uid not in users:
                continue
            state, age = _state_and_age(entry)
        except OSError:
            continue  # it has ended meanwhile
        if state not in "ZX":
            found.append((int(entry), age, state))
    return sorted(found, key=lambda each: -each[1])


def _state_and_age(pid: str) -> tuple[str, float]:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return fields[0], time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / TICKS
