"""What is said over one login, whatever carries it: command, password, script; answer, errors. Every size is bounded."""

from __future__ import annotations

import re
import signal

from nodetune import factfile, show
from nodetune.model import HostFacts
from nodetune.transport import Target, Unreachable, become, frame

KEPT_ERRORS = 32 << 10


class Talk:
    """Feed it what the host prints; send what `to_send` has; close the host's input when `input_done`."""

    wake: int | None = None
    """A handle that is readable when `woken` should be called. None where nothing is ever added to `to_send`."""

    farewell = signal.SIGKILL
    """What ends the program at the other end of a pipe."""

    def __init__(self, target: Target, script: bytes, nonce: str, most_bytes: int, program: str = "-") -> None:
        self._host = target.name
        self._become = target.become
        self._password = target.become_password
        self._command = become.command(target, nonce, program)
        self._script = script
        self._nonce = nonce
        self.most_bytes = most_bytes
        self._heard = 0
        self._output = bytearray()
        self._errors = bytearray()
        self._seen = 0
        self._frame = frame.Watch(nonce)
        self.to_send: memoryview = memoryview(b"" if self._command.ready else script)
        self._all_queued = not self._command.ready

    @property
    def command(self) -> str:
        return self._command.line

    @property
    def input_done(self) -> bool:
        """Everything is sent and nothing will follow."""
        return self._all_queued and not self.to_send

    @property
    def complete(self) -> bool:
        """The whole answer is here: what the host prints after it does not matter."""
        return self._frame.complete

    @property
    def begun(self) -> bool:
        """An answer has begun, so that the command did run."""
        return self._frame.found

    @property
    def waiting_for(self) -> str:
        """What the host has yet to do, for the message of a deadline."""
        if self._all_queued:
            return "waiting for the probe's answer"
        return f"waiting for sudo to ask for the password{self._said()}"

    def woken(self) -> None:
        """There may be more to send."""

    def sent(self, count: int) -> None:
        self.to_send = self.to_send[count:]

    def output(self, data: bytes) -> None:
        """Take standard output. Raises Unreachable (too much output)."""
        self._count(data)
        self._output += data
        self._frame.look(self._output)

    def errors(self, data: bytes) -> None:
        """Take standard error. Raises Unreachable (too much output, become failed)."""
        self._count(data)
        self._errors += data
        if not self._all_queued:
            self._converse()
        excess = max(0, len(self._errors) - KEPT_ERRORS)
        del self._errors[:excess]
        self._seen = max(0, self._seen - excess)

    def _count(self, data: bytes) -> None:
        self._heard += len(data)
        if self._heard > self.most_bytes:
            raise Unreachable(
                "too much output",
                f"cut off after {show.size(self.most_bytes)}; the output begins: {_begin(self._output or self._errors)}",
            )

    def _converse(self) -> None:
        """sudo's side of it: the password at its prompt, once; the script when the command runs."""
        if self._command.ready in self._errors:
            self.to_send, self._all_queued = memoryview(self._script), True
            return
        at = self._errors.find(self._command.prompt, self._seen)
        if at < 0:
            return
        if self._password is None:
            raise Unreachable("become failed", "sudo did not accept the password")
        self.to_send, self._password = memoryview(self._password.encode() + b"\n"), None
        self._seen = at + len(self._command.prompt)

    def answer(self, status: int | None) -> HostFacts | None:
        """The host's facts, the command having ended with `status` (None: nobody knows). Raises Unreachable."""
        if self._frame.found:
            text = frame.answer(bytes(self._output), self._nonce)
            try:
                return factfile.read(text, "the probe's answer", self._host)
            except factfile.BadFacts as problem:
                raise Unreachable("bad answer", str(problem)) from None
        raise self._failure(status)

    def _failure(self, status: int | None) -> Unreachable:
        text = self._errors.decode("utf-8", "replace")
        missing = re.search(r"sudo: .*command not found", text)
        if status in (126, 127) or missing:
            return Unreachable(
                "no python",
                f"{self.last_error() or 'the shell cannot run python3'}: install python3 (3.6 or newer), or set ansible_python_interpreter",
            )
        if self._become and not self._output and (not self._all_queued or "sudo" in text):
            return Unreachable(
                "become failed", f"{self.last_error() or 'sudo ended without a word'}{self._advice(text)}"
            )
        if status is None:
            return Unreachable("dropped", f"the connection ended before any answer{self._said()}")
        return Unreachable("bad answer", f"{frame.no_answer(self._output)} (exit status {status}){self._said()}")

    def _advice(self, text: str) -> str:
        if "password is required" in text:
            return ": give it with --ask-become-pass, or allow sudo without one"
        return ": sudo must allow this user to run the probe's python3"

    def last_error(self) -> str:
        """The last line of standard error that says something, safe to print."""
        text = self._errors.decode("utf-8", "replace").replace(self._command.prompt.decode() or "\0", "\n")
        lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
        return show.plain(lines[-1], 200) if lines else ""

    def error_text(self) -> str:
        """All of standard error that was kept, for those who know its language. Not safe to print."""
        return self._errors.decode("utf-8", "replace")

    def _said(self) -> str:
        last = self.last_error()
        return f"; it said: {last}" if last else ""


def _begin(data: bytearray) -> str:
    return show.plain(bytes(data[:80]).decode("utf-8", "replace").strip(), 80)
