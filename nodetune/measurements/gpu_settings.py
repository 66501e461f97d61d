"""Power limits and locked clocks of GPUs for the time of a measurement, given back whatever happens to it.

Before anything is set, RECORD says what holds now. It is given back when the measurement ends; if it is killed, by a helper
process that waits for its end, and by the supervisor (main.py), which outlives it. The record lies in /run: after a power cut
it is gone, as the settings are. NVML does not tell which clocks are locked: what nodetune locked (LOCKS) is locked again,
and anything else is released.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal

from nodetune.onhost import nvml as onhost
from nodetune.onhost import worker
from . import report as reporting

FOLDER = "/run/nodetune"
RECORD = os.path.join(FOLDER, "gpu-trial.json")
TURN = os.path.join(FOLDER, "gpu-trial.turn")
LOCKS = os.path.join(FOLDER, "gpu-locks.json")
"""As playbooks/module_utils/nodetune_host/clocks.py writes it."""
CLOCKS = {
    "locked_clocks": ("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"),
    "locked_memory_clocks": ("nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceResetMemoryLockedClocks"),
}
SETTINGS = ("power_limit",) + tuple(CLOCKS)
RESTORE_SECONDS = 60.0
PR_SET_PDEATHSIG = 1
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


@contextlib.contextmanager
def held(wanted, found):
    """Hold {setting: value} on GPUs (gpus.Seen). Raise MeasurementError if one refuses: then all is as it was."""
    if not wanted:
        yield
        return
    unknown = sorted(set(wanted) - set(SETTINGS))
    if unknown or not found or any(gpu.library is None for gpu in found):
        raise reporting.MeasurementError("cannot set {} without NVML".format(", ".join(unknown) or "anything"))
    with _turn():
        library = found[0].library
        _give_back(library)
        now = {_uuid(gpu): _now(gpu, wanted) for gpu in found}
        guardian, pipe = _guardian()
        try:
            _write(now)
            for gpu in found:
                for name in SETTINGS:
                    if name in wanted:
                        _set(gpu.library, gpu.handle, gpu.name, name, wanted[name])
            yield
        finally:
            try:
                _give_back(library)
            finally:
                os.close(pipe)
                os.waitpid(guardian, 0)  # it has the turn, too


@contextlib.contextmanager
def _turn():
    """Be the only one on this host that holds settings. The lock goes with the last process that has it."""
    try:
        os.makedirs(FOLDER, mode=0o700, exist_ok=True)
        handle = os.open(TURN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise reporting.MeasurementError("settings of GPUs are changed as root only: {}".format(problem))
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise reporting.MeasurementError("another tuning holds the settings of this host's GPUs: wait for its end")
        yield
    finally:
        os.close(handle)


def _uuid(gpu):
    return onhost.decoded(_call(gpu.library, gpu.name, "nvmlDeviceGetUUID", gpu.handle))


def _now(gpu, wanted):
    known = _load(LOCKS).get(_uuid(gpu), {})
    found = {name: known.get(name) for name in CLOCKS if name in wanted}
    if "power_limit" in wanted:
        found["power_limit"] = _call(gpu.library, gpu.name, "nvmlDeviceGetPowerManagementLimit", gpu.handle)
    return found


def _set(library, handle, who, name, value):
    if name == "power_limit":
        _call(library, who, "nvmlDeviceSetPowerManagementLimit", handle, value)
    elif isinstance(value, list):
        _call(library, who, CLOCKS[name][0], handle, *value)
    else:
        _call(library, who, CLOCKS[name][1], handle)


def _call(library, who, function, *arguments):
    try:
        return getattr(library, function)(*arguments)
    except library.NVMLError as problem:
        text = "{}: {}: {}".format(who, function, onhost.explain(problem))
        raise reporting.MeasurementError(text)


def _give_back(library):
    """Restore what the record says, and take it away when all is restored. Raise MeasurementError."""
    problems = []
    for uuid, settings in _load(RECORD).items():
        for name, value in settings.items():
            try:
                handle = _call(library, uuid, "nvmlDeviceGetHandleByUUID", uuid.encode())
                _set(library, handle, uuid, name, value)
            except reporting.MeasurementError as problem:
                problems.append(str(problem))
    if problems:
        raise reporting.MeasurementError("not restored: " + "; ".join(problems))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(RECORD)


def restore():
    """Give back what a killed measurement left. Return what went wrong, or None. Another one's turn is left alone."""
    if not os.path.exists(RECORD):
        return None
    try:
        return worker.ask(_restored, RESTORE_SECONDS, "the NVIDIA driver", 2)
    except worker.NoAnswerError as problem:
        return "settings of GPUs are not restored: {}".format(problem)


def _restored(step):
    step("restoring settings of GPUs")
    try:
        library = onhost.load()
        library.nvmlInit()
        with _turn():
            _give_back(library)
    except Exception as problem:  # whatever it is, it is said: the settings are not what they were
        return "settings of GPUs: {}".format(problem)
    return None


def _guardian():
    """Start a process that restores when ours has ended. Return its number, and the pipe whose end it waits for."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(reading)
        return pid, writing
    try:
        os.close(writing)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)  # it is to outlive us
        os.setsid()
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        os.read(reading, 1)
        if os.path.exists(RECORD):
            library = onhost.load()
            library.nvmlInit()  # in a process of its own: it has inherited none that works
            _give_back(library)
    finally:
        os._exit(0)


def _load(path):
    try:
        with open(path) as opened:
            found = json.load(opened)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise reporting.MeasurementError("{}: {}: look at it, and remove it".format(path, problem))
    return found


def _write(record):
    with open(RECORD + ".new", "w") as opened:
        json.dump(record, opened)
    os.rename(RECORD + ".new", RECORD)
