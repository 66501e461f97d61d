"""QEMU's machine protocol: one short session for each question, since QEMU answers one client at a time."""

import contextlib
import json
import socket
from pathlib import Path

from tests.machines.place import FleetError


class Monitor:
    """A session with one QEMU, used by `with`."""

    def __init__(self, path: Path, seconds: float = 120):
        self._path, self._seconds = path, seconds

    def __enter__(self):
        with contextlib.ExitStack() as opened:
            there = opened.enter_context(socket.socket(socket.AF_UNIX))
            there.settimeout(self._seconds)
            there.connect(str(self._path))
            self._lines = opened.enter_context(there.makefile("rw"))
            self._opened = opened.pop_all()
        self._lines.readline()  # the greeting
        self("qmp_capabilities")
        return self

    def __exit__(self, *_):
        self._opened.close()

    def __call__(self, command: str, **arguments):
        """Run a QMP command; what it returns. Raises FleetError with QEMU's own words."""
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        for line in self._lines:
            said = json.loads(line)
            if "error" in said:
                raise FleetError(f"QEMU refuses {command}: {said['error']['desc']}")
            if "return" in said:
                return said["return"]
        raise FleetError(f"QEMU ended while it was asked for {command}")
