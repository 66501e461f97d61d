"""Runs the system's tools: bounded in time and output, in the C locale, never through a shell."""

import os
import signal
import subprocess

from .problem import Problem, why

TOOL_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
LONGEST = 1 << 20
"""Bytes of output that are looked at."""


def find(name):
    """The full path of a command in the system's folders, or None."""
    for folder in TOOL_PATH.split(":"):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def attempt(argv, seconds=60):
    """Run a command and return (exit status, its output, its errors) as texts.

    Raises Problem when it is not on this host or does not end within `seconds`; then it is killed with its children.
    """
    tool = argv[0] if argv[0].startswith("/") else find(argv[0])
    if not tool:
        raise Problem(f"{argv[0]} is not on this host")
    try:
        process = subprocess.Popen(
            [tool, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": TOOL_PATH, "LC_ALL": "C", "HOME": "/root"},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise Problem(f"{tool} cannot be run: {why(error)}") from None
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        raise Problem(f"{' '.join(argv)} did not end within {seconds} s") from None
    return process.returncode, _text(out), _text(err)


def run(argv, seconds=60):
    """Run a command and return its output. Raises Problem with its last line of errors when it fails."""
    status, out, err = attempt(argv, seconds)
    if status:
        raise Problem(f"{' '.join(argv)} failed ({status}): {last_line(err) or last_line(out) or 'no message'}")
    return out


def last_line(text):
    """The last line that says something, cut to what fits a report."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _text(data):
    return data[:LONGEST].decode("utf-8", "backslashreplace")


def _end(process):
    """Kill it with its group. One that the kernel holds is left behind: waiting for it would hold the run as well."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
    try:
        process.communicate(timeout=2)
    except subprocess.TimeoutExpired:
        pass
