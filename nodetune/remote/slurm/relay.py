"""Runs one command on each node of a Slurm step, with its input, and prints its output as lines for srun to label.

Python 3.6. This and the plan (JSON) come in the environment, in parts because the kernel limits each string: what srun
reads from its standard input reaches no task before every node answers. On standard output, in the line protocol:
b (begun), o (output) or e (errors) with the text, x (ended) with the exit status. The end of standard input, or of the
time, ends the command.
"""

import json
import os
import select
import signal
import subprocess
import time
from typing import Any

from nodetune.onhost import files, protocol

PLACE = "NODETUNE_STEP_"


def plan() -> Any:
    """Remove the plan from the environment so that child processes do not inherit it, and return it."""
    parts: Any = []
    while PLACE + str(len(parts)) in os.environ:
        parts.append(os.environ.pop(PLACE + str(len(parts))))
    return json.loads("".join(parts))


def started(command: str) -> Any:
    return subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )


class Relay:
    """One running command."""

    def __init__(self, given: Any, command: str) -> None:
        self.nonce = given["nonce"]
        self.left = given["most"]
        self.end = time.monotonic() + given["seconds"]
        self.child = started(command)
        self.input = self.child.stdin
        self.pipes = {self.child.stdout.fileno(): b"o", self.child.stderr.fileno(): b"e"}
        self.to_send = given["script"].encode("ascii")
        os.set_blocking(self.input.fileno(), False)

    def say(self, kind: bytes, data: bytes = b"") -> None:
        files.write_all(1, protocol.encode(kind + data, self.nonce))

    def carry(self) -> bool:
        """Transfer data until the command has ended and sent everything. Return True if it ended on its own."""
        while self.pipes:
            over = self.child.poll() is not None
            wait = min(0.2 if over else 1.0, self.end - time.monotonic())
            if wait <= 0 or self.left < 0:
                return False
            ready, room, _ = select.select([0, *self.pipes], [self.input] if self.to_send else [], [], wait)
            if room:
                self.send()
            if 0 in ready and not os.read(0, 4096):
                return False
            for handle in ready:
                self.take(handle)
            if over and not ready:  # a child of it may hold its pipes
                return True
        return True

    def send(self) -> None:
        try:
            self.to_send = self.to_send[os.write(self.input.fileno(), self.to_send) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to hear more; what it has printed says why
            self.to_send = b""
        if not self.to_send:
            self.input.close()

    def take(self, handle: int) -> None:
        if handle not in self.pipes:
            return
        data = os.read(handle, 1 << 16)
        self.left -= len(data)
        if data:
            self.say(self.pipes[handle], data)
        else:
            del self.pipes[handle]

    def close(self, ended: bool) -> None:
        if not ended:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except OSError:  # another user's: it ends when its time is over, at the latest with the step
                return
        self.say(b"x", b"%d" % self.child.wait())


def main() -> None:
    given = plan()
    relay = Relay(given, given["others"].get(os.environ.get("SLURMD_NODENAME"), given["command"]))
    relay.say(b"b")
    relay.close(relay.carry())
