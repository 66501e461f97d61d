"""Runs programs of the host: bounded in time and output, and gone when the measurement is."""

import os
import select
import signal
import subprocess
import time

from . import report, worker

PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
MOST_BYTES = 8 << 20


def find(name):
    """The full path of a program: in the system's folders, then on this process's PATH. None where there is none."""
    for folder in (PATH + ":" + os.environ.get("PATH", "")).split(":"):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def need(name, package):
    """The full path of a program. Raises report.Skip with the package that has it."""
    path = find(name)
    if path is None:
        raise report.Skip("{} is not installed: apt install {p}, or dnf install {p}".format(name, p=package))
    return path


def start(command, **more):
    """Start a program that dies with us. Call it from the main thread: it dies with the thread that started it.

    Raises report.Fault when it cannot run.
    """
    own = os.getpid()
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options.update(more)
    environment = dict(os.environ, LC_ALL="C")
    try:
        return subprocess.Popen(command, env=environment, preexec_fn=lambda: worker.die_with(own), **options)
    except OSError as problem:
        raise report.Fault("{} cannot be run: {}".format(os.path.basename(command[0]), problem.strerror))


def last_line(data):
    """The last line that says something, short enough for a message."""
    lines = [line.strip() for line in data.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"


def run(command, seconds, ok=(0,), telling=None, **more):
    """Run a program (full path first) to its end. Returns its standard output.

    Raises report.Fault when it cannot run, fails with a status not in `ok`, takes too long or prints without end.
    `telling` makes a message of all that it printed, complaints first; without it the last complaint is the message.
    """
    return finish(start(command, **more), seconds, ok, telling)


def finish(process, seconds, ok=(0,), telling=None):
    """Wait for a program that was started here. Returns its standard output; raises report.Fault like run."""
    name = os.path.basename(process.args[0])
    try:
        out, errors = _both(process, name, time.monotonic() + seconds, seconds)
    finally:
        stop(process)
    if process.returncode not in ok:
        said = telling(errors + b"\n" + out) if telling else last_line(errors or out)
        raise report.Fault("{} failed ({}): {}".format(name, _status(process.returncode), said))
    return out.decode("utf-8", "backslashreplace")


def stop(process):
    """End a program that was started here, and take it in."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def _both(process, name, end, seconds):
    """Standard output and standard error, read side by side."""
    kept = {handle.fileno(): b"" for handle in (process.stdout, process.stderr) if handle}
    open_ones = set(kept)
    while open_ones:
        ready = select.select(list(open_ones), [], [], max(0.0, end - time.monotonic()))[0]
        if not ready:
            raise report.Fault("{} was not done within {:.0f} s".format(name, seconds))
        for handle in ready:
            data = os.read(handle, 1 << 16)
            kept[handle] += data
            if not data:
                open_ones.discard(handle)
            if len(kept[handle]) > MOST_BYTES:
                raise report.Fault("{} printed more than {} MiB".format(name, MOST_BYTES >> 20))
    try:
        process.wait(timeout=max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise report.Fault("{} closed its output and was not done within {:.0f} s".format(name, seconds))
    return [kept.get(handle.fileno(), b"") if handle else b"" for handle in (process.stdout, process.stderr)]


def _status(code):
    return "signal {}".format(signal.Signals(-code).name) if code < 0 else "exit status {}".format(code)
