"""What a command costs as a whole process, with its children."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent


def measured_peak(
    name: str, command: list[str], environment: dict[str, str] | None = None, expected: tuple[int, ...] = (0,)
) -> tuple[float, float, float]:
    """(CPU seconds of the command and its children, wall seconds, peak memory of the largest of them in MiB)."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        output = said.read().decode("utf-8", "replace")
    if process.returncode not in expected:
        sys.exit(f"{name} failed ({process.returncode}):\n{output[-2000:]}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss / 1024


def measured(name: str, command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """(CPU seconds of the command and its children, wall seconds)."""
    return measured_peak(name, command, environment)[:2]
