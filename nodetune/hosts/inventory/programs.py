"""Run the program that reads an inventory, and the inventory's own programs, with a time limit; leave none behind."""

import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from nodetune.foundation import paths
from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import Vault
from nodetune.hosts.inventory import child as child_program
from nodetune.hosts.patterns import InventoryError

CHILD = Path(__file__).with_name("child.py")

MAX_SECONDS = 300.0
"""Seconds that one program of an inventory may take. A large cloud is slow; Ansible itself has no limit."""

SILENT = 3.0
"""Seconds after which a notice on the terminal says what nodetune waits for."""

LEAVING = 2.0
"""Seconds between asking a program to end and killing it."""

TICK = 0.2

Answer = dict[str, Any]


def ask(path: Path, own: Sequence[Path], settings: Mapping[str, str], vault: Vault, data: bool = False) -> Answer:
    """Make child.py read an inventory with these programs in it and these variables set. `data`: see there. Raise InventoryError."""
    if not importlib.util.find_spec("ansible"):
        raise InventoryError(
            f"{path}: ansible-core, which reads inventories, {paths.LACKING}: name the hosts: -i 'gpu[001-128]'"
        )
    words = [str(each.absolute()) for each in (path, *own)] + ([child_program.DATA] if data else [])
    command = [sys.executable or "python3", str(CHILD), *words]
    with _told(vault) as pipe:
        environment = {**os.environ, **settings, **({child_program.SECRETS: str(pipe)} if pipe else {})}
        child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, pass_fds=[pipe] if pipe else [])
    assert child.stdout  # noqa: S101  (for the type checker)
    try:
        with closing(_Wait(child.pid)) as wait:
            for answer in _answers(child.stdout, wait):
                if "reading" not in answer:
                    return answer
        raise InventoryError(f"{path}: Ansible exited before it had read this: try ansible-inventory --list -i {path}")
    finally:
        _end(child)
        child.stdout.close()


@contextmanager
def _told(vault: Vault) -> Iterator[int | None]:
    """Yield a pipe with the vault's files and passwords: arguments and environment variables would expose them."""
    if not (vault.files or vault.passwords):
        yield None
        return
    out, into = os.pipe()
    try:
        with open(into, "w", encoding="utf-8") as stream:  # noqa: PTH123  (a descriptor)
            json.dump({"files": vault.files, "passwords": vault.passwords}, stream)
        yield out
    finally:
        os.close(out)


def short(path: Path | str) -> str:
    """Shorten a path as a user would type it in the current folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


class _Wait:
    """Measures the time for one source, or for one program that it runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._notice = False
        self.begin("")

    def begin(self, source: str) -> None:
        self.close()
        self._source = source
        self._since, self._running = time.monotonic(), _children(self._pid)

    def check(self) -> None:
        """Show a notice while waiting. Raise InventoryError after the time limit."""
        if not self._source:
            return
        if _children(self._pid) != self._running:  # a script may be asked for each host in turn
            self.begin(self._source)
        name, waited = short(self._source), time.monotonic() - self._since
        if waited > MAX_SECONDS:
            raise InventoryError(f"{name}: no answer within {MAX_SECONDS:g} s: run it manually with --list")
        if waited > SILENT and not self._notice and sys.stderr.isatty():
            self._notice = True
            text = f"waiting for the inventory {name} (at most {MAX_SECONDS:g} s)"
            print(plain_text.plain(text, 100), end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the notice from the terminal."""
        if self._notice:
            self._notice = False
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _answers(stream: IO[bytes], wait: _Wait) -> Iterator[Answer]:
    """Yield the lines of the child's answer as they arrive."""
    rest = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(TICK):
                wait.check()
                continue
            read = os.read(stream.fileno(), 1 << 16)
            if not read:
                return
            rest += read
            while b"\n" in read:
                line, _, rest = rest.partition(b"\n")
                read = bytes(rest)
                answer = json.loads(line)
                wait.begin(answer.get("reading", ""))
                yield answer


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and its descendants, which share our process group for Ctrl-C and the terminal."""
    if child.poll() is None:
        family = _family(child.pid)
        _signal(family[1:], signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(LEAVING)
        _signal(family[1:], signal.SIGKILL)
        child.kill()
    child.wait()


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def _family(pid: int) -> list[int]:
    """Return a process and all its descendants that the kernel reports."""
    return [pid, *(each for child in _children(pid) for each in _family(child))]


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []
