"""Slurm as the guard uses it: nodes and their reasons, drain, requeue, resume, through scontrol by its full path.

All of it within a time: with slurmctld dead scontrol would wait ten seconds. Standard library only.
"""

from __future__ import annotations

import math
import os
import re
import time

from nodetune.foundation import text
from nodetune.guard.node import records
from nodetune.onhost import command

STAMP = re.compile(r"\s*\[([^\[\]@]+)@([^\[\]]+)\]$")
"""Slurm adds who and when to a reason: `text [root@2026-11-21T10:00:00]`."""
TIME = "%Y-%m-%dT%H:%M:%S"
MIN_SECONDS, MAX_SECONDS = 0.3, 30.0
"""The minimum and maximum seconds for one call."""


class ScontrolError(Exception):
    """Slurm did not do it; one line that says why."""


class SlurmNode:
    """slurmctld's view of a node. `since` is the time of its reason in Unix seconds (None: unknown)."""

    def __init__(self, line: str) -> None:
        head, _, reason = line.partition(" Reason=")
        fields = dict(word.split("=", 1) for word in head.split() if "=" in word)
        self.name, self.state = fields.get("NodeName", ""), fields.get("State", "")
        self.address, self.hostname = fields.get("NodeAddr", self.name), fields.get("NodeHostName", self.name)
        said = re.sub(r"\s+(Comment|Extra|ReservationName)=.*$", "", reason.strip())
        stamp = STAMP.search(said)
        self.reason = said[: stamp.start()] if stamp else said
        self.since = _seconds(stamp[2]) if stamp else None

    @property
    def out_of_service(self) -> bool:
        return any(word in self.state for word in ("DRAIN", "DOWN", "FAIL"))

    @property
    def drained(self) -> bool:
        """Drained and nothing else: a node that is down has another trouble, too."""
        return "DRAIN" in self.state and not any(word in self.state for word in ("DOWN", "FAIL"))


def _seconds(stamp: str) -> float | None:
    try:
        return time.mktime(time.strptime(stamp, TIME))
    except (ValueError, OverflowError):
        return None


class Slurm:
    """scontrol. `deadline` (of time.monotonic) is for all calls together."""

    def __init__(self, tool: str, deadline: float = math.inf) -> None:
        self._tool, self._deadline = tool, deadline
        self._environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        if "TZ" in os.environ:  # its times must be read in the zone in which it writes them
            self._environment["TZ"] = os.environ["TZ"]
        config = os.environ.get("SLURM_CONF") or _config_of_slurmd()
        if config:
            self._environment["SLURM_CONF"] = config

    def nodes(self, *names: str) -> list[SlurmNode]:
        """Return these nodes, or all. Raise ScontrolError."""
        told = self._run("--oneliner", "show", "node", *names)
        return [SlurmNode(line) for line in told.splitlines() if "NodeName=" in line]

    def node(self, name: str) -> SlurmNode:
        """Return one node. Raise ScontrolError."""
        for found in self.nodes(name):
            return found
        raise ScontrolError(f"Slurm has no node {text.plain(name)}")

    def drain(self, name: str, reason: str) -> None:
        self._run("update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}")

    def give_reason(self, name: str, reason: str) -> None:
        self._run("update", f"NodeName={name}", f"Reason={reason}")

    def resume(self, name: str) -> None:
        self._run("update", f"NodeName={name}", "State=RESUME")

    def requeue(self, job: str) -> None:
        self._run("requeue", job)

    def _run(self, *words: str) -> str:
        seconds = min(MAX_SECONDS, max(MIN_SECONDS, self._deadline - time.monotonic()))
        try:
            # a list of words and no shell: a reason cannot be a command
            status, out, errors = command.attempt([self._tool, *words], seconds, environment=self._environment)
        except command.CommandError as problem:
            raise ScontrolError(f"{self._tool}: {problem}") from None
        if status:
            said = command.last_line(errors or out) or "failed without a message"
            raise ScontrolError(f"scontrol {words[0]}: {text.plain(said, 200)}")
        return str(out)


def _config_of_slurmd() -> str:
    """Return the configuration file of the slurmd that started us; empty for the default.

    A health check does not get it from Slurm.
    """
    pid = os.getppid()
    for _ in range(8):
        try:
            comm, status = records.read(f"/proc/{pid}/comm").strip(), records.read(f"/proc/{pid}/stat")
            if comm == "slurmd":
                return _told(records.read(f"/proc/{pid}/cmdline"), records.read(f"/proc/{pid}/environ"))
            pid = int(status.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return ""


def _told(command: str, environment: str) -> str:
    words = command.split("\0")
    for number, word in enumerate(words[1:], 1):
        if word == "-f":
            return words[number + 1] if number + 1 < len(words) else ""
        if word.startswith("-f"):
            return word[2:]
    found = [entry[11:] for entry in environment.split("\0") if entry.startswith("SLURM_CONF=")]
    return found[0] if found else ""
