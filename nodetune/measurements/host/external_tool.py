"""Run programs of the host: with limits for time and output, and never longer than the measurement."""

import os

from nodetune.onhost import command
from . import report

stop = command.stop


def find(name):
    """Return the full path of a program, from the system's folders or this process's PATH, or None."""
    return command.find(name, path=command.PATH + ":" + os.environ.get("PATH", ""))


def need(name, package):
    """Return the full path of a program. Raise SkipError with its package."""
    path = find(name)
    if path is None:
        raise report.SkipError("{} is not installed: apt install {p}, or dnf install {p}".format(name, p=package))
    return path


def start(argv, **more):
    """Start a program that dies with us. Call it from the main thread: it dies with the thread that started it.

    Raise report.MeasurementError if it cannot run.
    """
    try:
        return command.start(argv, dict(os.environ, LC_ALL="C"), tied=True, **more)
    except command.CommandError as problem:
        raise report.MeasurementError(str(problem))


def last_line(data):
    """Return the last line with text, short enough for a message."""
    return command.last_line(data) or "no message"


def run(argv, seconds, ok=(0,), telling=None, **more):
    """Run a program (full path first) to its end. Return its standard output.

    Raise report.MeasurementError if it cannot run, fails with a status not in `ok`, takes too long or prints too much.
    `telling` makes a message of its output, errors first; without it, the last error is the message.
    """
    return finish(start(argv, **more), seconds, ok, telling)


def finish(process, seconds, ok=(0,), telling=None):
    """Wait for a program that was started here. Return its standard output; raises report.MeasurementError like run."""
    try:
        status, out, errors = command.finish(process, seconds)
    except command.CommandError as problem:
        raise report.MeasurementError(str(problem))
    if status not in ok:
        said = telling(errors + b"\n" + out) if telling else last_line(errors or out)
        name = os.path.basename(process.args[0])
        raise report.MeasurementError("{} failed ({}): {}".format(name, command.status_text(status), said))
    return command.text(out)
