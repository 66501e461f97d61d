"""The first half of the collector: write the facts of the probe to a folder under this host's name.

It is sent as text before the probe's script (see collector.py) and runs on hosts: standard library and syntax of Python
3.6, and nothing of nodetune.
"""

import fcntl
import os
import pwd
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

PLACELESS = re.compile(r"localhost(\..*)?", re.IGNORECASE)


class DepositError(Exception):
    """The reason why there is no new file: one line."""


def deposit(probe: Any, layout: Any, folder: str, user: str, about: "dict[str, object]", lock: str) -> None:
    """Never return: end the process with 0 or 1.

    `user` writes (empty: the current user); `about` describes the document; `layout` formats it.
    """
    try:
        _deposit(probe, layout, folder, user, about, lock)
    except DepositError as problem:
        _end(str(problem))
    except OSError as problem:
        _end(f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem))
    os._exit(0)


def _end(text: str) -> None:
    os.write(2, f"nodetune: {text}\n".encode("ascii", "backslashreplace"))
    os._exit(1)


def _deposit(probe: Any, layout: Any, folder: str, user: str, about: "dict[str, object]", lock: str) -> None:
    name = _name(os.uname().nodename)
    _alone(lock)
    document = probe()
    document.update(host=name, schema="nodetune.facts/1", about={**document["about"], **about})
    if user:
        _become(user)
    _write(folder, name, layout(document).encode("ascii"))


def _name(node: str) -> str:
    """Return the host's name, which is also the name of its file."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", node) or PLACELESS.fullmatch(node):
        raise DepositError(f"host name {node!r} is invalid or not unique: set a real host name")
    return node


def _alone(path: str) -> None:
    """Hold the lock until this process ends. A reader that the probe leaves behind does not inherit it."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(held, 20).decode("ascii", "replace").strip()
        raise DepositError(f"an earlier run (process {process}) has not ended: not starting another") from None
    os.ftruncate(held, 0)
    os.write(held, str(os.getpid()).encode("ascii"))


def _become(user: str) -> None:
    """Become another user permanently: a file server may map root to nobody, so an ordinary user writes."""
    if os.getuid():
        raise DepositError(f"only root can write as {user}")
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise DepositError(f"user {user} does not exist here") from None
    os.initgroups(user, known.pw_gid)
    os.setgid(known.pw_gid)
    os.setuid(known.pw_uid)


def _write(folder: str, name: str, content: bytes) -> None:
    """Write the whole content under the host's name, or nothing. Follow no link below the folder."""
    where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    partial = f".{name}.{boot}.partial"  # two hosts that go by one name do not share this one
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        _remove(partial, where)  # left by a run that was killed
        _put(os.open(partial, flags, 0o640, dir_fd=where), content)
        os.rename(partial, name + ".json", src_dir_fd=where, dst_dir_fd=where)
    except OSError as problem:
        with suppress(OSError):
            _remove(partial, where)
        raise DepositError(f"{folder}/{name}.json is unchanged: {problem.strerror}") from None
    with suppress(OSError):  # not every file system can; the file itself is there
        os.fsync(where)


def _put(there: int, content: bytes) -> None:
    """Write and close: a file server may report a full disk only at the close."""
    with suppress(OSError):  # not every file system keeps modes
        os.fchmod(there, 0o640)
    try:
        while content:
            content = content[os.write(there, content) :]
        os.fsync(there)
    finally:
        os.close(there)


def _remove(name: str, where: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=where)
