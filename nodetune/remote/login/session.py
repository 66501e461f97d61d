"""The session over one login by any transport: command, password, script; answer, errors. All sizes are limited."""

import re
import signal
import threading
import zlib
from collections.abc import Container
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.facts import document
from nodetune.foundation import text as plain_text
from nodetune.hosts.target import Target, UnreachableError
from nodetune.onhost import protocol
from nodetune.remote.login import sudo

KEPT_ERRORS = 32 << 10
UNKNOWN_OPTION = "Unknown option: -I\n"
"""Messages of Python 2 and of Python 3 before 3.4 about the options that it is started with. The script does not run then."""
ONE_AT_A_TIME = threading.Lock()
"""An answer takes up to 16 MiB while it is unpacked, so hosts take turns."""


def feed(decoder: protocol.Decoder, data: bytes) -> list[Any]:
    """Return the complete parts. Raise UnreachableError (no python, bad answer, too much output)."""
    try:
        with ONE_AT_A_TIME:
            found: list[Any] = decoder.feed(data)
    except protocol.TooMuchError as problem:
        raise UnreachableError("too much output", f"a line of the answer is not acceptable: {problem}") from None
    except protocol.LineError as problem:
        raise UnreachableError("bad answer", f"a line of the answer is damaged: {problem}") from None
    if decoder.old:
        raise UnreachableError("no python", f"python3 on the host is Python {decoder.old}: 3.6 or newer is needed")
    return found


class Session:
    """Takes the output of the host; send `to_send` to the host, and close its input when `input_done`."""

    wake: int | None = None
    """A handle that is readable when `woken` should be called. None if nothing is ever added to `to_send`."""

    farewell = signal.SIGKILL
    """The signal that ends the program at the other end of a pipe."""

    asked: Container[str] | None = None
    """The facts that the script was asked for. Others are dropped from the answer. None: nothing is dropped."""

    def __init__(self, target: Target, script: bytes, nonce: str, most_bytes: int, program: str = "-") -> None:
        self._host = target.name
        self._become = target.become
        self._password = target.become_password
        self._command = sudo.command(target, nonce, program)
        self._script = script
        self.most_bytes = most_bytes
        self._heard = 0
        self._errors = bytearray()
        self._seen = 0
        self._decoder = protocol.Decoder(nonce)
        self._answer: bytes | None = None
        self.to_send: memoryview = memoryview(b"" if self._command.ready else script)
        self._all_queued = not self._command.ready

    @property
    def command(self) -> str:
        return self._command.line

    @property
    def input_done(self) -> bool:
        """Whether everything is sent and nothing will follow."""
        return self._all_queued and not self.to_send

    @property
    def complete(self) -> bool:
        """Whether the whole answer is here: later output of the host does not matter."""
        return self._answer is not None

    @property
    def begun(self) -> bool:
        """Whether an answer has begun, which proves that the command ran."""
        return bool(self._decoder.begun)

    @property
    def waiting_for(self) -> str:
        """The pending step of the host, for the message of a deadline."""
        if self._all_queued:
            return "waiting for the probe's answer"
        return f"waiting for sudo to ask for the password{self._said()}"

    def woken(self) -> None:
        """Note that there may be more to send."""

    def sent(self, count: int) -> None:
        self.to_send = self.to_send[count:]

    def output(self, data: bytes) -> None:
        """Take standard output. Raise UnreachableError (too much output, no python, bad answer)."""
        self._count(data)
        for found in feed(self._decoder, data):
            self._hear(found)

    def _hear(self, _found: Any) -> None:
        """Keep the answer as it came: many hosts' answers may wait until they are judged."""
        self._answer = self._decoder.packed if self._answer is None else self._answer

    def errors(self, data: bytes) -> None:
        """Take standard error. Raise UnreachableError (too much output, become failed)."""
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
            raise UnreachableError(
                "too much output",
                f"cut off after {plain_text.size(self.most_bytes)}; the output begins: {_begin(self._decoder.noise or self._errors)}",
            )

    def _converse(self) -> None:
        """Answer sudo: send the password once, at its prompt, and the script when the command runs."""
        if self._command.ready in self._errors:
            self.to_send, self._all_queued = memoryview(self._script), True
            return
        at = self._errors.find(self._command.prompt, self._seen)
        if at < 0:
            return
        if self._password is None:
            raise UnreachableError("become failed", sudo.REFUSED)
        self.to_send, self._password = memoryview(self._password.encode() + b"\n"), None
        self._seen = at + len(self._command.prompt)

    def answer(self, status: int | None) -> HostFacts | None:
        """Return the host's facts; the command ended with `status` (None: unknown). Raise UnreachableError."""
        if self._answer is None:
            raise self._failure(status)
        try:
            return document.read(zlib.decompress(self._answer), "the probe's answer", self._host, asked=self.asked)
        except document.FactsError as problem:
            raise UnreachableError("bad answer", str(problem)) from None

    def _failure(self, status: int | None) -> UnreachableError:
        if self.begun:
            return UnreachableError(
                "dropped", f"the answer ended after {len(self._decoder.parts)} of its parts{self._said()}"
            )
        text = self.error_text()
        if UNKNOWN_OPTION in text:
            install = "install it, or set ansible_python_interpreter"
            return UnreachableError(
                "no python", f"the host's Python is older than 3.4: 3.6 or newer is needed: {install}"
            )
        advice = sudo.advice(text) if self._become else ""
        missing = re.search(r"sudo: .*command not found", text)
        if (status in (126, 127) or missing) and not advice:
            return UnreachableError(
                "no python",
                f"{self.last_error() or 'the shell cannot run python3'}: install python3 (3.6 or newer), or set ansible_python_interpreter",
            )
        if self._become and not self._decoder.noise and (not self._all_queued or "sudo" in text):
            last = self.last_error() or "sudo exited without a message"
            return UnreachableError(
                "become failed", advice or f"{last}: sudo must allow this user to run the probe's python3"
            )
        if status is None:
            return UnreachableError("dropped", f"the connection ended before any answer{self._said()}")
        return UnreachableError("bad answer", f"{_no_answer(self._decoder.noise)} (exit status {status}){self._said()}")

    def last_error(self) -> str:
        """Return the last non-empty line of standard error, safe to print."""
        text = self.error_text().replace(self._command.prompt.decode() or "\0", "\n")
        lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
        return plain_text.plain(lines[-1], 200) if lines else ""

    def error_text(self) -> str:
        """Return the kept standard error for parsing. It is not safe to print."""
        return self._errors.decode("utf-8", "replace")

    def _said(self) -> str:
        last = self.last_error()
        return f"; it said: {last}" if last else ""


def _no_answer(output: bytes) -> str:
    """Describe output that contains no answer."""
    if not output.strip():
        return "the host printed nothing"
    begin = output[:120].decode("utf-8", "replace").strip()
    return f"no probe answer in its output, which begins: {plain_text.plain(begin, 120)}"


def _begin(data: bytes | bytearray) -> str:
    return plain_text.plain(bytes(data[:80]).decode("utf-8", "replace").strip(), 80)
