"""Whether a node may be failed now: the mode, the switches, and how many others were.

One mark a node in a folder that all nodes share, dated by the file server's clock.

The folder may be on a server that is gone, so it is only touched in a child that can be left behind, and only when a
job is about to be held.
"""

from __future__ import annotations

import os
import random
import re
import time
from typing import TYPE_CHECKING, Any

from nodetune.guard.node import records
from nodetune.onhost import one_reader, worker

if TYPE_CHECKING:
    from nodetune.guard.node.policy import Policy

SECOND = 10**9
HOUR, AHEAD = 3600 * SECOND, 60 * SECOND
"""For how long a mark counts; and how far ahead of a mark no other can be, unless the server's clock was set back."""
MARKS, OFF = "failed", "off"
COMM = "nodetune:shared"
TURN_SECONDS = 0.3
ATTEMPTS, TICK_SECONDS = 4, 0.02


def forbidden(chosen: Policy, node: str, seconds: float, run: str) -> str:
    """Return why this node must not be failed now; empty if it may, and then it is counted.

    `seconds` is the time limit for the shared folder, `run` the folder with the lock file.
    """
    if chosen.mode != "enforce":
        return f"the mode is {chosen.mode}"
    for path in chosen.off:
        if os.path.lexists(path):
            return f"switched off by {path}"
    lock = os.path.join(run, records.LOCK)
    return why_not(chosen.shared, node, chosen.cap, seconds, lock) if chosen.shared else ""


def why_not(shared: str, node: str, most: int, seconds: float, lock: str | None = None) -> str:
    """Mark this node as failed. Return why it must not be: switched off, the cap is reached, or the folder fails."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", node).lstrip(".") or "_"

    def claim(_: Any) -> str:
        other = one_reader.take_turn(COMM, TURN_SECONDS, 0, lock=lock)
        return f"{shared}: {one_reader.in_words(other)}" if other else _claim(shared, name, most)

    try:
        return str(worker.ask(claim, seconds, shared))
    except worker.NoAnswerError:
        return f"{shared} does not answer: failed nodes cannot be counted"


def _claim(shared: str, name: str, most: int) -> str:
    try:
        if os.path.lexists(os.path.join(shared, OFF)):
            return f"switched off by {os.path.join(shared, OFF)}"
        return _mark(os.path.join(shared, MARKS), name, most)
    except OSError as problem:
        return f"{shared}: {(problem.strerror or str(problem)).lower()}: failed nodes cannot be counted"


def _mark(folder: str, name: str, most: int) -> str:
    """Write the mark, then its date, then count: this order makes earlier nodes visible.

    Marks of one tick of the file server's clock count as before one another, so that the cap is never passed, and are
    dated again after a moment, so that not all of them give way.
    """
    os.makedirs(folder, mode=0o755, exist_ok=True)
    path = os.path.join(folder, name)
    before = _dated(path)
    for attempt in range(ATTEMPTS):
        time.sleep(random.uniform(0, TICK_SECONDS * attempt))  # noqa: S311  (so that nodes do not come back together)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644))
        os.utime(path)
        mine = _dated(path)
        others = {each: _dated(os.path.join(folder, each)) for each in os.listdir(folder) if each != name}
        if mine not in others.values():
            break
    for each, dated in others.items():
        if dated <= mine - HOUR:
            _remove(os.path.join(folder, each))
    earlier = [each for each, dated in others.items() if mine - HOUR < dated and not mine < dated < mine + AHEAD]
    if before > mine - HOUR or len(earlier) < most:
        return ""
    _remove(path)
    nodes = "1 node" if len(earlier) == 1 else f"{len(earlier)} nodes"
    return f"{nodes} failed within an hour, but only {most} {'is' if most == 1 else 'are'} allowed ({folder})"


def _dated(path: str) -> int:
    """Return when the file server last wrote the file, in nanoseconds; 0 if it is missing."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # another node was faster
