"""Where the fleet keeps its files, and what its machines are called."""

import contextlib
import fcntl
import hashlib
import os
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ACCELERATION = os.environ.get("NODETUNE_FLEET_ACCEL", "tcg,thread=multi,tb-size=128")
"""Never KVM unasked: where it opens but cannot run a stock kernel, guests hang instead of failing."""
PORT = 2222
"""Not 22: an SSH server of the developer's machine holds 22 on every address, those of 127.0.1.0/24 too."""
OP_PASSWORD = "operate-gpus"  # the only password on any machine: that of `op` for sudo
TEMPLATE = 250
"""The number that the machine has from which all others are cloned."""


class FleetError(Exception):
    """A machine or its image could not be made; one readable message."""


def folder() -> Path:
    made = Path(os.environ.get("NODETUNE_FLEET_DIR", "~/.cache/nodetune-fleet")).expanduser()
    made.mkdir(parents=True, exist_ok=True)
    return made


def address(number: int) -> str:
    return f"127.0.1.{number}"


def name(number: int) -> str:
    return f"gpu{number:02d}"


def digest(*parts: Path | str) -> str:
    """A short name for content: files count by name, mode and bytes, folders by all files below them."""
    seen = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            seen.update(part.encode() + b"\0")
            continue
        for file in sorted(part.rglob("*")) if part.is_dir() else [part]:
            if file.is_file() and "__pycache__" not in file.parts:
                name = os.path.relpath(file, HERE.parent)
                executable = bool(file.stat().st_mode & 0o100)  # the other bits are up to the umask
                seen.update(f"{name} {executable}\0".encode() + file.read_bytes())
    return seen.hexdigest()[:12]


def open_lock(path: Path, *, shared: bool = False, wait: bool = True) -> int | None:
    """A lock that lasts as long as the descriptor, in whatever process; None when taken and not waited for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


@contextlib.contextmanager
def locked(path: Path):
    handle = open_lock(path)
    try:
        yield
    finally:
        os.close(handle)


PATIENCE = 300
"""Seconds after which a wait is given up. Two cores that emulate two machines during other work are slow."""


def until(told: str, holds, seconds: float = PATIENCE, every: float = 0.1):
    """Ask `holds` again and again until it answers something true; that answer. Raises FleetError at the end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(every)
    raise FleetError(f"{told}: not within {seconds:.0f} s")
