"""Settings of a host for the time of a measurement, which are always restored.

Before anything is set, RECORD stores the current values. They are restored when the measurement ends; if it is killed,
by a helper process that waits for its end, and by the supervisor (main.py), which outlives it. Settings left by a host
that froze are restored before the next settings are held. The record is in /run: after a power cut both are gone.

A kind of setting is a module with three functions. start() is called once in each process, before any other. current(key,
value) returns {key: value}: everything to restore after this value was put. put(key, value) raises MeasurementError if
the host rejects it. Keys are text.
"""

import contextlib
import fcntl
import json
import os
import signal

from nodetune.onhost import worker
from . import gpu_settings, kernel_files
from . import report as reporting

FOLDER = "/run/nodetune"
RECORD = os.path.join(FOLDER, "trial.json")
TURN = os.path.join(FOLDER, "trial.turn")
KINDS = {each.KIND: each for each in (kernel_files, gpu_settings)}
RESTORE_SECONDS = 60.0
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


@contextlib.contextmanager
def held(wanted):
    """Hold [(kind, key, value)]. If the host rejects one, restore all and raise MeasurementError."""
    if not wanted:
        yield
        return
    unknown = sorted({kind for kind, _, _ in wanted} - set(KINDS))
    if unknown:
        raise reporting.MeasurementError("unknown kind of setting {}".format(", ".join(unknown)))
    with _turn():
        _started(kind for kind, _, _ in wanted)
        _give_back()
        now = _now(wanted)
        guardian, pipe = _guardian()
        try:
            _write(now)
            for kind, key, value in wanted:
                KINDS[kind].put(key, value)
            yield
        finally:
            try:
                _give_back()
            finally:
                os.close(pipe)
                os.waitpid(guardian, 0)  # it has the turn, too


@contextlib.contextmanager
def _turn():
    """Be the only holder of settings on this host. The last process that has the lock releases it."""
    try:
        os.makedirs(FOLDER, mode=0o700, exist_ok=True)
        handle = os.open(TURN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise reporting.MeasurementError("settings are changed as root only: {}".format(problem))
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise reporting.MeasurementError("another tuning holds settings of this host: wait for its end")
        yield
    finally:
        os.close(handle)


def _started(kinds):
    for kind in sorted(set(kinds)):
        KINDS[kind].start()


def _now(wanted):
    """Return [[kind, key, value]] of the current values, each key once: the value before the first of several."""
    found = {}
    for kind, key, value in wanted:
        for each, before in KINDS[kind].current(key, value).items():
            found.setdefault((kind, each), before)
    return [[kind, key, value] for (kind, key), value in found.items()]


def _give_back():
    """Restore the values in the record, and remove it when all are restored. Raise MeasurementError."""
    problems = []
    for kind, key, value in _load():
        try:
            KINDS[kind].put(key, value)
        except reporting.MeasurementError as problem:
            problems.append(str(problem))
    if problems:
        raise reporting.MeasurementError("not restored: " + "; ".join(problems))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(RECORD)


def restore():
    """Restore the settings of a killed measurement. Return the error, or None. Do not touch those of a running one."""
    if not os.path.exists(RECORD):
        return None
    try:
        return worker.ask(_restored, RESTORE_SECONDS, "the host's settings", 2)
    except worker.NoAnswerError as problem:
        return "settings are not restored: {}".format(problem)


def _restored(step):
    step("restoring settings")
    try:
        with _turn():
            _started(kind for kind, _, _ in _load())
            _give_back()
    except Exception as problem:  # whatever it is, it is said: the settings are not what they were
        return "settings of this host: {}".format(problem)
    return None


def _guardian():
    """Start a process that restores when ours has ended. Return its number, and the pipe whose end it waits for.

    It is certainly running when this returns: until it has said so, it dies with us, like all forks of a measurement.
    """
    reading, writing = os.pipe()
    ready, telling = os.pipe()
    pid = os.fork()
    if pid:
        os.close(reading)
        os.close(telling)
        there = os.read(ready, 1)
        os.close(ready)
        if not there:
            os.close(writing)
            raise reporting.MeasurementError("the process that restores settings did not start: nothing was changed")
        return pid, writing
    try:
        os.close(writing)
        os.close(ready)
        _outlive()
        os.write(telling, b"1")
        os.close(telling)
        os.read(reading, 1)
        if os.path.exists(RECORD):
            _started(kind for kind, _, _ in _load())  # in a process of its own: it has inherited nothing that works
            _give_back()
    finally:
        os._exit(0)


def _outlive():
    """Outlive the process that forked this one and the signals that end it."""
    worker.prctl(worker.PR_SET_PDEATHSIG, 0)
    os.setsid()
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def _load():
    try:
        with open(RECORD) as opened:
            found = json.load(opened)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as problem:
        raise reporting.MeasurementError("{}: {}: inspect the file and remove it".format(RECORD, problem))
    return found


def _write(record):
    with open(RECORD + ".new", "w") as opened:
        json.dump(record, opened)
    os.rename(RECORD + ".new", RECORD)
