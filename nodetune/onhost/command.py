"""Run commands of the host: with limits for time and output, in the C locale, never through a shell."""

import errno
import os
import select
import signal
import time

from .worker import die_with, kill

PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C", "HOME": "/"}
MAX_BYTES = 8 << 20
ENDING_SECONDS = 2.0
"""Seconds for a killed command to disappear."""


class CommandError(OSError):
    """A command did not run or did not finish. One line."""

    def __init__(self, text):
        OSError.__init__(self, errno.EIO, text)

    def __str__(self):
        return self.strerror


def find(name, root="", path=PATH):
    """Return the full path of a command, or None. `root` is a prefix for the searched folders."""
    for folder in path.split(":"):
        place = os.path.join(folder, name)
        if folder and os.access(root + place, os.X_OK) and not os.path.isdir(root + place):
            return place
    return None


def run(argv, seconds, called=None, **more):
    """Run a command (full path first) and return its output. Raise CommandError, with its last line if it fails."""
    status, out, errors = attempt(argv, seconds, called, **more)
    if status:
        last = last_line(errors) or last_line(out) or "no message"
        raise CommandError("{} failed ({}): {}".format(called or _name(argv), status_text(status), last))
    return out


def attempt(argv, seconds, called=None, **more):
    """Run a command (full path first). Return (exit status, output, errors). Raise CommandError."""
    status, out, errors = finish(start(argv, **more), seconds, called)
    return status, text(out), text(errors)


def start(argv, environment=None, tied=False, **more):
    """Start a command in its own session. `tied`: it dies with the thread that started it. Raise CommandError."""
    import subprocess  # here, like all that takes milliseconds: most programs that can run a command run none

    if tied:
        import ctypes  # noqa: F401  (what runs between fork and exec must not import)
    own = os.getpid()
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": "/"}
    options.update(more, env=environment or ENVIRONMENT, start_new_session=True)
    try:
        return subprocess.Popen(argv, preexec_fn=(lambda: die_with(own)) if tied else None, **options)
    except OSError as problem:
        raise CommandError("{} cannot be run: {}".format(_name(argv), problem.strerror)) from None


def finish(process, seconds, called=None):
    """Wait for a command that was started here. Return (exit status, output, errors), the latter as bytes.

    Raise CommandError if it takes too long or prints too much; then kill it with its whole session.
    """
    try:
        out, errors = _outputs(process, called or _name(process.args), seconds)
    finally:
        stop(process)
    return process.returncode, out, errors


def lines(argv, seconds, **more):
    """Yield the lines that a command (full path first) prints. When its time is over, end it. Raise CommandError."""
    import subprocess

    process, end, rest = start(argv, stderr=subprocess.DEVNULL, **more), time.monotonic() + seconds, b""
    try:
        while select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data or time.monotonic() > end:
                break
            whole = (rest + data).split(b"\n")
            rest = whole.pop()
            for line in whole:
                yield text(line)
    finally:
        stop(process)


def stop(process):
    """End a command that was started here. If it is stuck in the kernel, leave it behind: waiting would block us."""
    if process.returncode is None:
        kill(os.killpg, process.pid)
        _has_ended(process, ENDING_SECONDS)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def last_line(said):
    """Return the last line with text, cut to fit a message; empty if there is none."""
    said = text(said) if isinstance(said, bytes) else said
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def status_text(status):
    return "signal {}".format(signal.Signals(-status).name) if status < 0 else str(status)


def text(data):
    return data.decode("utf-8", "backslashreplace")


def _name(argv):
    return os.path.basename(argv[0])


def _outputs(process, called, seconds):
    """Read standard output and standard error until both are closed and the command has ended."""
    end = time.monotonic() + seconds
    parts = {pipe.fileno(): [] for pipe in (process.stdout, process.stderr) if pipe}
    still_open, taken = set(parts), 0
    while still_open:
        ready = select.select(list(still_open), [], [], max(0.0, end - time.monotonic()))[0]
        if not ready:
            raise CommandError("{} did not finish within {:g} s".format(called, seconds))
        for handle in ready:
            data = os.read(handle, 1 << 16)
            parts[handle].append(data)
            taken += len(data)
            if not data:
                still_open.discard(handle)
        if taken > MAX_BYTES:
            raise CommandError("{} printed more than {} MiB".format(called, MAX_BYTES >> 20))
    if not _has_ended(process, max(0.1, end - time.monotonic())):
        raise CommandError("{} closed its output but did not finish within {:g} s".format(called, seconds))
    return [b"".join(parts[pipe.fileno()]) if pipe else b"" for pipe in (process.stdout, process.stderr)]


def _has_ended(process, seconds):
    import subprocess

    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
