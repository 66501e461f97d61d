"""Commands on the host, run from a privileged pod: each outlives the session that started it, and keeps its result.

A session ends when its kubelet or container runtime restarts, which a fix may do. The command continues, and the next
session takes what it has said since. It runs in the namespaces of the host's first process: nothing differs from a login.
"""

import ctypes
import os
import sys
import time

FIRST = "/proc/1"
WORK = "/work"
"""A folder of the pod, in memory."""

NAMESPACES = ("mnt", "uts", "ipc", "net", "cgroup")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh", "LANG": "C.UTF-8"}
ENDED, NOT_YET, UNKNOWN = 252, 254, 253
"""Exit statuses of a session: the command has ended, and our last line of errors has its exit status; it still runs; this
pod does not know it, or it ended without a result. Any other, 0 too, is that of a session that was cut off."""

CHUNK = 1 << 16
LOOK_SECONDS = 0.02
SLOWER = 1.5
MAX_LOOK_SECONDS = 0.5


def start(name, command, size):
    """Start the command with `size` bytes of our standard input as its own. Do nothing if it was started before."""
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            sys.exit(UNKNOWN)  # the session broke before everything was here: nothing was started
        data += part
    try:
        os.mkdir(_path(name))
    except FileExistsError:
        return
    host = _opened(FIRST)
    pid = os.fork()
    if pid == 0:
        try:
            _keep(name, command, data, host)
        finally:
            os._exit(0)
    _write(name, "pid", str(pid))


def follow(name, out, errors, seconds):
    """Pass on the command's output and errors from these positions on, for this many seconds. Return an exit status."""
    end, wait, at = time.time() + seconds, LOOK_SECONDS, {"out": out, "errors": errors}
    while True:
        status, alive = _read(name, "status"), _is_alive(name)
        moved = _pass_on(name, at, 1, "out") + _pass_on(name, at, 2, "errors")
        if status:
            os.write(2, "\n{}\n".format(status).encode())
            return ENDED
        if not alive and not _read(name, "status"):
            return UNKNOWN
        if time.time() > end:
            return NOT_YET
        wait = LOOK_SECONDS if moved else min(wait * SLOWER, MAX_LOOK_SECONDS)
        time.sleep(wait)


def _opened(process):
    """Return the namespaces and the root of a process of the host. Exit with one line where that is refused."""
    try:
        spaces = [os.open("{}/ns/{}".format(process, name), os.O_RDONLY) for name in NAMESPACES]
        return spaces, os.open(process + "/root", os.O_RDONLY)
    except OSError as problem:
        _refuse(problem.strerror)


def _refuse(why):
    sys.stderr.write(
        "nodetune: the pod cannot enter the host ({}): it must be privileged, with hostPID\n".format(why.lower())
    )
    sys.stderr.flush()
    os._exit(1)


def _keep(name, command, data, host):
    """Run the command, away from the session, and write down its result."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    given = os.open(_path(name, "input"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(_path(name, "input"))
    said = [os.open(_path(name, each), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) for each in ("out", "errors")]
    for each in (0, 1, 2):
        os.dup2(nothing, each)
    while data:
        data = data[os.write(given, data) :]
    os.lseek(given, 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        _become(command, given, said, host)
    how = os.waitpid(child, 0)[1]
    code = os.WEXITSTATUS(how) if os.WIFEXITED(how) else 128 + os.WTERMSIG(how)
    _write(name, "status", str(code))


def _become(command, given, said, host):
    """Become the command, on the host."""
    try:
        for to, handle in enumerate((given, *said)):
            os.dup2(handle, to)
        spaces, root = host
        libc = ctypes.CDLL(None, use_errno=True)
        for space in spaces:
            if libc.setns(space, 0):
                _refuse(os.strerror(ctypes.get_errno()))
        os.fchdir(root)
        os.chroot(".")
        os.chdir("/")
        _own_score()
        os.closerange(3, 256)
        os.execve("/bin/sh", ["sh", "-c", command], ENVIRONMENT)  # noqa: S606  (it is the shell)
    except OSError as problem:
        _refuse("{}: {}".format(problem.filename or "chroot", problem.strerror))
    finally:
        os._exit(1)


def _own_score():
    """Undo what the pod's class says about running out of memory: a half-made change is worse than any process."""
    try:
        with open("/proc/self/oom_score_adj", "w") as stream:
            stream.write("0")
    except OSError:
        pass


def _is_alive(name):
    pid = _read(name, "pid")
    return bool(pid) and os.path.exists("/proc/" + pid)


def _pass_on(name, at, to, which):
    """Write what is new in a file. Return the number of bytes."""
    before = at[which]
    try:
        with open(_path(name, which), "rb") as stream:
            stream.seek(before)
            while True:
                data = stream.read(CHUNK)
                if not data:
                    break
                at[which] += len(data)
                while data:
                    data = data[os.write(to, data) :]
    except FileNotFoundError:
        pass
    return at[which] - before


def _write(name, which, text):
    with open(_path(name, "." + which), "w") as stream:
        stream.write(text)
    os.rename(_path(name, "." + which), _path(name, which))


def _read(name, which):
    try:
        with open(_path(name, which)) as stream:
            return stream.read()
    except OSError:
        return ""


def _path(name, *more):
    return os.path.join(WORK, name, *more)
