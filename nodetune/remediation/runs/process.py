"""Whether the process that began a run still works on it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any


def this_one() -> dict[str, Any]:
    """Identify this process for later: a process number is valid only on one machine in one boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        boot = ""
    return {"machine": socket.gethostname(), "boot": boot, "pid": os.getpid(), "start": started(os.getpid())}


def started(pid: Any) -> str:
    """Return when a process started, in the kernel's ticks; empty if it does not exist."""
    if not isinstance(pid, int):
        return ""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except OSError:
        return ""
