"""Kernel files that a tuning may write temporarily: sysctls and values of disks' queues in ALLOWED.

A kind of setting of temporary_settings.py: a key is a path, a value the text to write. Any measurement accepts them in its
option `hold` ({path: text}), only with the option `allow_settings`.
"""

import os
import re

from . import report as reporting

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@:!-]*"
ALLOWED = re.compile(
    "|".join(
        (
            r"/proc/sys/net/ipv4/tcp_(rmem|wmem|congestion_control)",
            r"/proc/sys/net/core/(netdev_max_backlog|netdev_budget)",
            r"/proc/sys/vm/dirty_(background_)?(bytes|ratio)",
            r"/sys/class/bdi/\d+:\d+/read_ahead_kb",
            r"/sys/block/" + NAME + r"/queue/(read_ahead_kb|nr_requests|scheduler)",
        )
    )
)
MAX_LENGTH = 1000
KIND = __name__.rpartition(".")[2]


def of_options(options):
    """Return the settings of a measurement's options as temporary_settings.held takes them. Raise MeasurementError without leave."""
    wanted = options.get("hold") or {}
    if wanted and options.get("allow_settings") is not True:
        raise reporting.MeasurementError("settings of a host are changed only with --allow-settings")
    return [(KIND, path, text) for path, text in wanted.items()]


def start():
    """Do nothing: files need no library."""


def current(path, _value):
    """Return {path: text} to write in order to restore the current values.

    Of a limit in bytes and its ratio, one is in force and the other reads 0, which must not be written.
    """
    text = _read(path)
    other = _other(path)
    return {path: text} if text != "0" or other is None else {other: _read(other)}


def put(path, value):
    """Write a value. Raise MeasurementError if the kernel refuses it or keeps another."""
    text = str(value)
    if not ALLOWED.fullmatch(path) or len(text) > MAX_LENGTH or "\n" in text:
        raise reporting.MeasurementError("{}: is not a file that a tuning may write".format(path[:200]))
    if _read(path) == text:
        return
    try:
        with open(path, "w") as opened:
            opened.write(text)
    except OSError as problem:
        raise reporting.MeasurementError("{}: {} was rejected: {}".format(path, text, problem.strerror.lower()))
    found = _read(path)
    if found != text:
        raise reporting.MeasurementError("{}: the kernel set {} instead of {}".format(path, found, text))


def _read(path):
    """Return the text of a file with single blanks; for a choice, the chosen word."""
    if not ALLOWED.fullmatch(path):
        raise reporting.MeasurementError("{}: is not a file that a tuning may write".format(path[:200]))
    try:
        with open(path) as opened:
            text = " ".join(opened.read(MAX_LENGTH).split())
    except OSError as problem:
        raise reporting.MeasurementError("{}: {}".format(path, problem.strerror.lower()))
    chosen = re.search(r"\[([^\]]+)\]", text)
    return chosen.group(1) if chosen else text


def _other(path):
    folder, name = os.path.split(path)
    if not name.startswith("dirty_"):
        return None
    stem, _, unit = name.rpartition("_")
    return os.path.join(folder, stem + ("_ratio" if unit == "bytes" else "_bytes"))
