"""Shell commands as root on the host of a node, through a privileged pod: as over SSH, but they survive their session."""

import secrets
import socket
import time
from functools import cache
from pathlib import Path

from nodetune.hosts.target import UnreachableError
from nodetune.onhost import host_command
from nodetune.remote.kubernetes import exec_channel, pod
from nodetune.remote.kubernetes.api import Api, ApiError
from nodetune.remote.kubernetes.websocket import Channels
from nodetune.remote.login import script
from nodetune.remote.login.deadline import Deadline

FOLLOW_SECONDS = 20.0
"""How long one session waits for a command: no proxy ends it as idle, and a dead one is noticed soon."""

RETRY_SECONDS = 60.0
"""How long a node may not answer, such as while its container runtime restarts, unless a session may take longer."""

PAUSE_SECONDS = 1.0
KNOWN = (host_command.ENDED, host_command.NOT_YET, host_command.UNKNOWN)
FINAL = ("no privilege", "no python", "too much output")
"""States of a session that the next one would not change."""

REFUSED = (401, 403, 404)
"""Answers that asking again would not change."""


@cache
def _program() -> str:
    return Path(host_command.__file__).read_text("utf-8")


def retry_seconds(seconds: float) -> float:
    return max(RETRY_SECONDS, FOLLOW_SECONDS + seconds)


class Said:
    """The output of one command over all its sessions. `most`: bytes of output and of errors, and values in JSON."""

    complete = False
    waiting_for = "waiting for a command on the host"
    most_bytes = 1 << 16

    def __init__(self, most: tuple[int, int, int]) -> None:
        self.out, self.error, self.to_send = bytearray(), bytearray(), memoryview(b"")
        self._most, self._values, self.whole = most, 0, False

    def sent(self, count: int) -> None:
        self.to_send = self.to_send[count:]

    def output(self, data: bytes) -> None:
        """Take standard output. Raise UnreachableError if it is too much."""
        self.out += data
        self._values += sum(map(data.count, (b",", b"[", b"{")))
        self._check()

    def errors(self, data: bytes) -> None:
        self.error += data
        self._check()

    def _check(self) -> None:
        if any(
            found > most for found, most in zip((len(self.out), len(self.error), self._values), self._most, strict=True)
        ):
            raise UnreachableError("too much output", "nodetune: too much output: cut off")

    def last_error(self) -> str:
        return (self.error.decode("utf-8", "replace").strip().splitlines() or [""])[-1]


class HostShell:
    """Runs commands through one pod, one after another. A session may take `seconds` more than it waits for its command."""

    def __init__(self, api: Api, namespace: str, name: str, most: tuple[int, int, int], seconds: float) -> None:
        self._api, self._namespace, self._pod, self._most = api, namespace, name, most
        self._seconds, self._retry_seconds = FOLLOW_SECONDS + seconds, retry_seconds(seconds)
        self._answered = 0.0

    def run(self, command: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a command with this input. Return its exit status, output and errors. Raise UnreachableError.

        A command is started once: after a session that broke, the next one only asks for its result.
        """
        name, heard = secrets.token_hex(8), Said(self._most)
        self._answered = time.monotonic()
        code = self._session(heard, f"start({name!r}, {command!r}, {len(data)})\n", name, data)
        while code not in (host_command.ENDED, host_command.UNKNOWN):
            code = self._session(heard, "", name, b"")
        if code == host_command.UNKNOWN:
            told = f"the result of a command is lost: pod {self._pod}, or its node, was restarted"
            raise UnreachableError("dropped", told)
        errors, _, status = bytes(heard.error[:-1]).rpartition(b"\n")
        return int(status), bytes(heard.out), errors

    def _session(self, heard: Said, first: str, name: str, data: bytes) -> int | None:
        """Return the exit status of one session; None if it broke. Raise UnreachableError if too many did.

        A container runtime that restarts ends its sessions with 0.
        """
        deadline = Deadline(self._seconds)
        channels, connection = self._opened(deadline)
        then = f"sys.exit(follow({name!r}, {len(heard.out)}, {len(heard.error)}, {FOLLOW_SECONDS}))\n"
        heard.to_send = memoryview(script.by_length(f"{_program()}\n{first}{then}".encode()) + data)
        status: list[bytes] = []
        before = len(heard.out) + len(heard.error)
        try:
            exec_channel.carry(channels, connection, heard, status, deadline)
            code = exec_channel.exit_status(b"".join(status), heard)
        except (OSError, ValueError):
            code = None
        except UnreachableError as problem:
            if problem.state in FINAL:
                raise
            code = None
        finally:
            connection.close()
        if code not in KNOWN:
            time.sleep(PAUSE_SECONDS)
        if code in KNOWN or len(heard.out) + len(heard.error) > before:
            self._answered = time.monotonic()
        return code

    def _opened(self, deadline: Deadline) -> tuple[Channels, socket.socket]:
        """Return an open session, as soon as the node admits one. Raise UnreachableError."""
        while True:
            try:
                self._require_answers()
                return exec_channel.opened(self._api, self._namespace, self._pod, deadline)
            except ApiError as problem:
                if problem.status in REFUSED or time.monotonic() - self._answered > self._retry_seconds:
                    raise UnreachableError(pod.STATES.get(problem.status, "unreachable"), str(problem)) from None
            deadline = Deadline(deadline.seconds)
            time.sleep(PAUSE_SECONDS)

    def _require_answers(self) -> None:
        if time.monotonic() - self._answered > 2 * self._retry_seconds:
            raise UnreachableError("dropped", f"sessions in pod {self._pod} break again and again")
